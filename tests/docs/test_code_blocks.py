"""Every Python block of the README and of the documentation runs, page by page, from top to bottom."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [path for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))) if "```python" in path.read_text()]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_code_of_the_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = page.read_text()
    namespace: dict[str, object] = {"__name__": "__page__"}
    for block in BLOCK.finditer(text):
        if "import torch" in block[1] and not (find_spec("torch") and find_spec("onnxscript")):
            pytest.skip("the rest needs PyTorch and onnxscript: pip install 'ansorlite[torch]'")
        line = text.count("\n", 0, block.start(1))
        # Empty lines before the code, so that a traceback names the line of the page.
        exec(compile("\n" * line + block[1], str(page), "exec"), namespace)
