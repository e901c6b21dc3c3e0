"""The machine that programs are made for: one row of facts, read from the machine itself or written down here."""

from ansorlite.target.facts import Target
from ansorlite.target.here import TARGET_VARIABLE, check_runs, host, obstacle, process_target, this_machine
from ansorlite.target.named import GPUS, LEVELS, NAMED, PROCESSORS
from ansorlite.target.names import recorded, resolve, to_file

__all__ = [
    "GPUS",
    "LEVELS",
    "NAMED",
    "PROCESSORS",
    "TARGET_VARIABLE",
    "Target",
    "check_runs",
    "host",
    "obstacle",
    "process_target",
    "recorded",
    "resolve",
    "this_machine",
    "to_file",
]
