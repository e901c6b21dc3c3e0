"""Results that are costly to make: each is made once, whoever asks at the same time, and the latest used are kept."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from threading import Lock
from typing import Generic, TypeVar

Result = TypeVar("Result")


class Memo(Generic[Result]):
    """Key → result, for any number of threads.

    Args:
        keep: how many results to keep.
    """

    def __init__(self, keep: int) -> None:
        self._keep = keep
        self._lock = Lock()
        self._results: OrderedDict[Hashable, Result] = OrderedDict()
        self._pending: dict[Hashable, Future[Result]] = {}

    def __len__(self) -> int:
        return len(self._results)

    def get(self, key: Hashable, make: Callable[[], Result]) -> Result:
        """The result for ``key``, which ``make`` makes if there is none; whoever asks meanwhile waits for it.

        Raises:
            Exception: what ``make`` raised; the next one who asks tries again.
        """
        with self._lock:
            if key in self._results:
                self._results.move_to_end(key)
                return self._results[key]
            pending = self._pending.get(key)
            if pending is None:
                mine = self._pending[key] = Future()
        return self._made(key, mine, make) if pending is None else pending.result()

    def _made(self, key: Hashable, future: Future[Result], make: Callable[[], Result]) -> Result:
        try:
            result = make()
        except BaseException as error:
            with self._lock:
                del self._pending[key]
            future.set_exception(error)
            raise
        with self._lock:
            del self._pending[key]
            self._results[key] = result
            if len(self._results) > self._keep:
                self._results.popitem(last=False)
        future.set_result(result)
        return result
