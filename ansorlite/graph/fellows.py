"""Open dimensions that belong together, as calls show."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import permutations


class Fellows:
    """Which dimensions change together, from call to call: that of a cache, and that of the mask over it."""

    def __init__(self) -> None:
        self._latest: Mapping[str, int] = {}
        #: Of two dimensions, how often they changed alike; ``None`` if they ever did not.
        self._alike: dict[tuple[str, str], int | None] = {}

    def see(self, sizes: Mapping[str, int]) -> None:
        """Remember a call."""
        changes = {name: size - self._latest[name] for name, size in sizes.items()} if self._latest else {}
        self._latest = sizes
        for pair in permutations(changes, 2):
            one, other = (changes[name] for name in pair)
            so_far = self._alike.get(pair, 0)
            if (one or other) and so_far is not None:
                self._alike[pair] = so_far + 1 if one == other else None

    def of(self, dim: str) -> tuple[str, ...]:
        """Those that changed as ``dim`` did, every time, and more than once."""
        return tuple(other for (one, other), count in self._alike.items() if one == dim and count is not None and count > 1)
