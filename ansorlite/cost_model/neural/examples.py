"""Measured programs as tensors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansorlite.cost_model.protocol import Group, relative_throughput

#: A program that failed counts as one that takes so many times as long as the slowest one of its task.
_FAILED = 2.0


@dataclass(frozen=True, eq=False)
class Examples:
    """``n`` programs of several tasks.

    Attributes:
        x: ``(n, items, numbers)`` float32; 0 where a program has fewer items than others.
        mask: ``(n, items)`` float32: 1 where there is an item.
        labels: ``(n,)`` float32: the best latency of the task / latency; 0 of a failure.
        log: ``(n,)`` float32: the natural logarithm of seconds; that of a failure is above all of its task.
        task, device: ``(n,)`` int64: the number of each, among those of :func:`examples`' groups.
    """

    x: Tensor
    mask: Tensor
    labels: Tensor
    log: Tensor
    task: Tensor
    device: Tensor

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, at: Tensor) -> Examples:
        return Examples(self.x[at], self.mask[at], self.labels[at], self.log[at], self.task[at], self.device[at])


@dataclass(frozen=True, eq=False)
class Scale:
    """Brings the numbers of items to a mean of 0 and a deviation of 1, as they have among the programs learnt from.

    Attributes:
        mean, deviation: ``(numbers - unscaled,)`` float32.
        unscaled: so many first numbers of each item stay as they are.
    """

    mean: Tensor
    deviation: Tensor
    unscaled: int

    @staticmethod
    def of(x: Tensor, mask: Tensor, unscaled: int) -> Scale:
        """Of examples; a number that is always the same is taken as it is, less its value."""
        items = x[:, :, unscaled:][mask > 0]
        deviation = items.std(dim=0, correction=0)
        return Scale(items.mean(dim=0), torch.where(deviation > 1e-6, deviation, torch.ones_like(deviation)), unscaled)

    def __call__(self, x: Tensor, mask: Tensor) -> Tensor:
        scaled = ((x[:, :, self.unscaled :] - self.mean) / self.deviation).clamp(-10, 10) * mask[:, :, None]
        return torch.cat([x[:, :, : self.unscaled], scaled], dim=2)


def learnable(groups: Sequence[Group]) -> list[Group]:
    """Those of tasks with a program that ran; the other ones say nothing that could be learnt.

    Raises:
        ValueError: a number that is not finite.
    """
    if not all(np.isfinite(group.features).all() for group in groups):
        raise ValueError("a number of a program's view is infinite or not a number; all must be finite")
    ran = {group.task for group in groups if np.isfinite(group.latencies).any()}
    return [group for group in groups if group.features.size and group.task in ran]


def examples(groups: Sequence[Group], devices: Sequence[str] = ()) -> Examples:
    """The programs of :func:`learnable` groups, at least one, in order.

    Args:
        devices: by number, those that groups may name.
    """
    items = max(group.features.shape[1] for group in groups)
    tasks = {name: number for number, name in enumerate(dict.fromkeys(group.task for group in groups))}
    x, mask = zip(*(_padded(group.features, items) for group in groups), strict=True)
    numbers = [(tasks[group.task], devices.index(group.device) if devices else 0) for group in groups]
    of_each = np.repeat(np.array(numbers, np.int64), [len(group.latencies) for group in groups], axis=0)
    return Examples(
        torch.cat(x),
        torch.cat(mask),
        torch.from_numpy(np.concatenate(relative_throughput(groups))).float(),
        torch.from_numpy(np.concatenate(_logarithms(groups))).float(),
        torch.from_numpy(of_each[:, 0].copy()),
        torch.from_numpy(of_each[:, 1].copy()),
    )


def tensors(view: NDArray[np.float64]) -> tuple[Tensor, Tensor]:
    """``x`` and ``mask`` of programs that all have as many items."""
    return _padded(view, view.shape[1])


def _padded(view: NDArray[np.float64], items: int) -> tuple[Tensor, Tensor]:
    n, own, numbers = view.shape
    x, mask = torch.zeros(n, items, numbers), torch.zeros(n, items)
    x[:, :own] = torch.from_numpy(np.array(view, np.float32))
    mask[:, :own] = 1.0
    return x, mask


def _logarithms(groups: Sequence[Group]) -> list[NDArray[np.float64]]:
    worst: dict[str, float] = {}
    for group in groups:
        ran = group.latencies[np.isfinite(group.latencies)]
        worst[group.task] = max(worst.get(group.task, 0.0), float(ran.max(initial=0.0)))
    return [np.log(np.minimum(group.latencies, _FAILED * worst[group.task])) for group in groups]


def lists(given: Examples, batch: int) -> Iterator[Tensor]:
    """Positions in ``given``, in random order: batches of whole tasks, together about ``batch``; a larger task is cut.

    Programs are compared with those of their own task alone, so a task is not spread thinly over batches.
    """
    waiting: list[Tensor] = []
    for task in torch.randperm(int(given.task.max()) + 1):
        own = torch.nonzero(given.task == task)[:, 0]
        for cut in own[torch.randperm(len(own))].split(batch):
            waiting.append(cut)
            if sum(map(len, waiting)) >= batch:
                yield torch.cat(waiting)
                waiting = []
    if waiting:
        yield torch.cat(waiting)


@contextmanager
def alone(seed: int) -> Iterator[None]:
    """One thread, and all random numbers from ``seed``; what the process had before is there again afterwards."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            yield
    finally:
        torch.set_num_threads(threads)
