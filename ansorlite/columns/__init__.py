"""Arithmetic written once for one program, and run on whole populations.

``tape.py`` records what Python's operators do, ``arithmetic.py`` has what Python has no operators for, ``program.py`` makes
instructions of a record, ``machine.py`` is what runs them, and ``compound.py`` makes one instruction of many.
"""
