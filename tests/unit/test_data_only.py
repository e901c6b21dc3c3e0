"""Nothing that is read is executed: what could do so is in no module of ours, but where the code is made right there."""

from __future__ import annotations

import ast
from pathlib import Path

import ansorlite

ROOT = Path(ansorlite.__path__[0])

#: Modules whose reading runs what is read.
EXECUTING = {"pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "code", "codeop", "runpy", "pty"}

#: Calls that run text, and where the text is written by the very function.
RUNNING = {"eval": (), "exec": ("loops/python_source.py",), "__import__": ()}


def test_no_module_runs_what_it_reads() -> None:
    for file in sorted(ROOT.rglob("*.py")):
        place = str(file.relative_to(ROOT))
        for node in ast.walk(ast.parse(file.read_text())):
            match node:
                case ast.Import(names=names):
                    assert not {alias.name.partition(".")[0] for alias in names} & EXECUTING, place
                case ast.ImportFrom(module=str(module)):
                    assert module.partition(".")[0] not in EXECUTING, place
                case ast.Call(func=ast.Name(id=name)) if name in RUNNING:
                    assert place in RUNNING[name], f"{place} calls {name}"
                case ast.Call(func=ast.Attribute(attr="load", value=ast.Name(id="np")), keywords=given):
                    assert any(k.arg == "allow_pickle" and ast.unparse(k.value) == "False" for k in given), place
