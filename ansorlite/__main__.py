"""``python -m ansorlite`` is the ``ansorlite`` command."""

from ansorlite.cli import main

main(prog_name="ansorlite")
