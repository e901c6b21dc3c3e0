"""Every error that a user can cause. Each message names the cause and the cure.

A bug in ansorlite is never an :class:`AnsorliteError`: it keeps its own type and traceback.
The command line turns an :class:`AnsorliteError` into one sentence and exit code 2.
"""

from ansorlite.visible import visible


class AnsorliteError(Exception):
    """Base of all errors that come from what the user gave, not from a bug. What it says has no control characters."""

    def __str__(self) -> str:
        return visible(super().__str__())


class ExpressionError(AnsorliteError, ValueError):
    """A tensor expression that means nothing: wrong rank, unknown axis, a misplaced reduction, a refused dtype mix."""


class ScheduleError(AnsorliteError, ValueError):
    """A schedule that cannot be: it names a loop that is gone, or asks for what a stage cannot do; a trace of something else."""


class ArgumentError(AnsorliteError, ValueError):
    """An array handed to a kernel or model has the wrong shape, dtype, count or name."""


class ModelError(AnsorliteError):
    """A model file that is malformed, or that needs something ansorlite does not have.

    Its message is one line of at most :attr:`LONGEST` characters, however long the names in the file are.
    """

    LONGEST = 1000

    def __init__(self, message: str) -> None:
        line = " ".join(message.split())
        super().__init__(line if len(line) <= self.LONGEST else f"{line[: self.LONGEST - 1]}…")


class ProgramSizeError(AnsorliteError):
    """A program whose machine code would take too long to make: so much of it is unrolled."""


class RecordsError(AnsorliteError):
    """A tuning database that cannot be opened, read or understood."""


class TargetError(AnsorliteError, ValueError):
    """A target that is unknown, or that this machine cannot serve."""


class DeviceLostError(AnsorliteError):
    """A device that fails whatever it is asked, until this process ends: a program touched what is not its own, or hung."""


class MemoryLimitError(AnsorliteError, MemoryError):
    """A computation that needs more memory than the machine has."""


class ExternalError(AnsorliteError):
    """A function from outside that is not there, raises, or does not write what it should."""


class TuningError(AnsorliteError):
    """Tuning cannot go on at all, for example because not even the naive program runs."""


class ExtraError(AnsorliteError, ImportError):
    """Something needs a package that is not installed. The message names the extra of ansorlite that installs it."""


class CalibrationError(AnsorliteError):
    """What was measured of a machine cannot be read, or this machine cannot be measured."""


class BrokenProgramWarning(RuntimeWarning):
    """A program that does not compile, so that the next best one was taken: a bug in ansorlite, not a mistake of the user's.

    ``warnings.simplefilter("error", BrokenProgramWarning)`` makes it an error; the tests of ansorlite do so.
    """
