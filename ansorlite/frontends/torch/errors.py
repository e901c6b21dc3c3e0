"""Why a graph is left to PyTorch."""


class NotCompiledError(Exception):
    """The message goes on from "this graph is left to PyTorch:". No user sees the error itself."""
