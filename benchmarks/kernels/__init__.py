"""Tuned kernels beside those of other systems: ``python -m benchmarks.kernels --help``.

::

    operators/   what is computed: the te definition, and the same in numpy, PyTorch and ONNX
    suites/      which shapes: a tuple of cases a suite
    peers/       the other systems, each a function from a case to calls that can be timed
    results.py   what was found, as rows in a file that runs add to
    session.py   one case: tune, check against the peers, time
    tables.py    rows -> tables for a terminal and for docs/performance.md
    __main__.py  the command
"""
