"""``python -m benchmarks.models``. What it needs beyond ansorlite is an extra; without it, one sentence says so."""

import importlib
import sys
from importlib.util import find_spec

if __name__ == "__main__":
    missing = [name for name in ("torch", "onnxscript", "onnxruntime") if find_spec(name) is None]
    if missing:
        sys.exit(f"this benchmark needs {', '.join(missing)}; install what it needs with: pip install 'ansorlite[peers]'")
    importlib.import_module("benchmarks.models.command").main()
