"""What a module says to Python: its text without comments and docstrings, so that a word of either makes no run another's."""

from __future__ import annotations

import ast
import functools
import importlib.util
import io
import tokenize
from collections.abc import Iterator
from pathlib import Path

from ansorlite.errors import AnsorliteError


@functools.cache
def text(module: str) -> str:
    """The text of a module.

    Raises:
        AnsorliteError: it has none.
    """
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise AnsorliteError(f"{module} has no source to tell whether it has changed")
    return Path(spec.origin).read_text()


@functools.cache
def code(module: str) -> str:
    """The lines of a module that do something.

    Raises:
        AnsorliteError: as :func:`text` does.
    """
    return stripped(text(module))


def stripped(source: str) -> str:
    """Python without comments, docstrings, and empty lines that are in no string."""
    lines = source.splitlines(keepends=True)
    dropped = {row for each in _docstrings(source) for row in range(each.lineno, (each.end_lineno or each.lineno) + 1)}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        row, column = token.start
        if token.type == tokenize.COMMENT:
            lines[row - 1] = lines[row - 1][:column].rstrip() + "\n"
        elif token.type == tokenize.NL and not lines[row - 1].strip():
            dropped.add(row)
    return "".join(line for row, line in enumerate(lines, 1) if row not in dropped)


def _docstrings(source: str) -> Iterator[ast.stmt]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(node):
            yield node.body[0]
