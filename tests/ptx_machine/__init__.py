"""A machine for PTX, for machines without a GPU: see ``machine.launch``."""

from tests.ptx_machine.counts import Counts
from tests.ptx_machine.errors import PtxError
from tests.ptx_machine.machine import launch

__all__ = ["Counts", "PtxError", "launch"]
