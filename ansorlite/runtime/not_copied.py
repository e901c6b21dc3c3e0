"""What holds machine code of this process: there is one of it, which everybody shares."""

from __future__ import annotations

from typing import ClassVar, NoReturn, SupportsIndex

from ansorlite.errors import ArgumentError


class NotCopied:
    """Refuses ``copy.copy``, ``copy.deepcopy`` and ``pickle`` in one sentence.

    Attributes:
        elsewhere: how another process gets one, in the imperative.
    """

    elsewhere: ClassVar[str]

    def __reduce_ex__(self, _protocol: SupportsIndex, /) -> NoReturn:
        raise ArgumentError(
            f"this {type(self).__name__} is machine code of this process, which is neither copied nor pickled; "
            f"share it, as any number of threads may call it, and in another process {self.elsewhere}"
        )
