"""The command line: one command a file. It starts at once, because a command is imported only when it is called."""

from ansorlite.cli.main import main

__all__ = ["main"]
