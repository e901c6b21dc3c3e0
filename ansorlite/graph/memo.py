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
        self._futures: OrderedDict[Hashable, Future[Result]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._futures)

    def get(self, key: Hashable, make: Callable[[], Result]) -> Result:
        """The result for ``key``, which ``make`` makes if there is none; whoever asks meanwhile waits for it.

        Raises:
            Exception: what ``make`` raised; the next one who asks tries again.
        """
        with self._lock:
            future = self._futures.get(key)
            mine = future is None
            if future is None:
                future = self._futures[key] = Future()
                while len(self._futures) > self._keep:
                    self._futures.popitem(last=False)
            else:
                self._futures.move_to_end(key)
        if mine:
            self._fill(key, future, make)
        return future.result()

    def _fill(self, key: Hashable, future: Future[Result], make: Callable[[], Result]) -> None:
        try:
            future.set_result(make())
        except BaseException as error:
            with self._lock:
                if self._futures.get(key) is future:
                    del self._futures[key]
            future.set_exception(error)
