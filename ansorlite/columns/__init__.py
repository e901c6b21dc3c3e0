"""Arithmetic written once for one program, and run on whole populations.

``column.py`` records it on a tape, ``program.py`` makes instructions of that, ``machine.py`` is what runs them.
"""
