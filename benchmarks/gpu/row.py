"""What a case came to, and the file that keeps it."""

from __future__ import annotations

import json
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Row:
    """What a case came to.

    Attributes:
        wrong: what is wrong with the output, or why there is none; empty: it is right.
        ours, theirs: seconds of one call; 0 where there are none.
        bandwidth: bytes that come and go once, a second.
        trials: measurements that its tuning has made by now, over all parts.
        seconds: that the case took, this time.
        reference: what the output was compared with.
        unfinished: whether it has not had all of its trials: it is gone on with when there is time again.
        pace: seconds that 64 trials take, as those took that were made last; 0: none were.
    """

    family: str
    case: str
    device: str
    wrong: str
    ours: float = 0.0
    theirs: float = 0.0
    bandwidth: float = 0.0
    trials: int = 0
    seconds: float = 0.0
    reference: str = ""
    when: float = 0.0
    unfinished: bool = False
    pace: float = 0.0


def reason(error: Exception) -> str:
    """One line of what went wrong; where it did goes to the standard error of the process."""
    traceback.print_exception(error)
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]


def kept(results: Path, row: Row) -> Row:
    """``row``, which is added to the file."""
    with results.open("a") as file:
        file.write(json.dumps(asdict(row)) + "\n")
    return row


def read(results: Path, device: str) -> dict[tuple[str, str], Row]:
    """The rows of a device, by family and case: the last of each counts. A line that a kill has cut off is none."""
    found: dict[tuple[str, str], Row] = {}
    for line in results.read_text().splitlines() if results.exists() else ():
        try:
            row = Row(**json.loads(line))
        except (ValueError, TypeError):
            continue
        if row.device == device:
            found[row.family, row.case] = row
    return found
