"""Whole models beside those of other systems: ``python -m benchmarks.models --help``. Needs ``pip install 'ansorlite[peers]'``.

::

    zoo/           the models, plain PyTorch
    exported.py    a module with random weights -> ONNX
    light.py       the models that come with the onnx package
    quantized.py   a model on integers of 8 bits
    table.py       name -> model
    peers.py       the other systems, each a function from a model to a call that can be timed
    session.py     one model: tune, check against onnxruntime, time in turns
    results.py     what was found, as rows in a file that runs add to
    page.py        rows -> docs/models_performance.md
    command.py     the command
"""
