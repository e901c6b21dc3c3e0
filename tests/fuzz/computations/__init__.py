"""Random ``te`` computations, each held against an evaluation that shares no code with the project.

``plan.py`` says what a computation is, in plain data; ``drawing.py`` makes random ones; ``oracle.py`` evaluates them, one element
after another; ``translation.py`` writes them in ``te``; ``checking.py`` compares. The first three import nothing of ansorlite's.
"""
