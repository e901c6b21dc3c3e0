"""What a GPU would answer with a fault, with garbage, or sometimes with the right numbers."""


class PtxError(Exception):
    """The program does what PTX does not allow, or what this machine does not know."""
