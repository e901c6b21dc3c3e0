"""Models exported for GPUs: all of ``on_driver.py``, in a process in which the driver is a stand-in."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_libraries_for_gpus_on_a_stand_in_for_the_driver() -> None:
    script = Path(__file__).with_name("on_driver.py")
    command = [sys.executable, "-m", "pytest", str(script), "-q", "-n", "0", "-p", "no:cacheprovider", "-p", "no:randomly"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[3])
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
