"""``python -m tests.fuzz.computations --count 2000 --seed 0``: random computations, and what is wrong about them."""

from __future__ import annotations

import argparse
import sys
import time
import traceback

from tests.fuzz.computations.checking import MismatchError, check
from tests.fuzz.computations.drawing import drawn
from tests.fuzz.computations.reducing import reduced, reproducer


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.computations", description=__doc__)
    parser.add_argument("--count", type=int, default=2000, help="how many computations")
    parser.add_argument("--seed", type=int, default=0, help="of the first one; the others follow")
    parser.add_argument("--whole", action="store_true", help="show failures as they were drawn, not made smaller")
    parser.add_argument("--traces", action="store_true", help="show where exceptions come from")
    given = parser.parse_args()
    failures, known, begin = 0, 0.0, time.process_time()
    for seed in range(given.seed, given.seed + given.count):
        plan = drawn(seed)
        try:
            known += check(plan)
        except MismatchError as error:
            failures += 1
            print(f"seed {seed}: {error}", flush=True)
            if given.traces and error.__cause__ is not None:
                traceback.print_exception(error.__cause__)
            smaller = plan if given.whole else reduced(plan, error)
            print(reproducer(smaller), flush=True)
    share = known / max(given.count - failures, 1)
    print(
        f"{given.count} computations in {time.process_time() - begin:.0f} s of one processor: {failures} wrong; "
        f"the oracle knew {share:.1%} of the elements"
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
