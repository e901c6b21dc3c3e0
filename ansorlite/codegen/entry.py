"""One native function for many kernels: it calls them in order, so that nothing else runs between them.

``void entry(void **bases)`` takes the addresses of a few blocks of memory (one for temporaries, one for weights, one for each
input and output of a model); everything that a kernel reads or writes lies at a constant offset from one of them.
``void entry_profiled(void **bases, int64_t *nanoseconds)`` does the same and adds to each step's counter how long it took.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from string import Template
from typing import Final, TypeAlias

from ansorlite.codegen.clock import NOW
from ansorlite.target import Target


@dataclass(frozen=True)
class Address:
    """A place in memory: so many bytes from the start of block number ``base``."""

    base: int
    offset: int


@dataclass(frozen=True)
class Call:
    """A call of a kernel.

    Attributes:
        entry: the kernel's symbol: ``void entry(void **arguments)``.
        arguments: of its parameters, inputs then outputs; last the workspace's.
    """

    entry: str
    arguments: tuple[Address, ...]


@dataclass(frozen=True)
class Move:
    """A copy of ``nbytes`` bytes between places that do not overlap."""

    source: Address
    target: Address
    nbytes: int


EntryStep: TypeAlias = Call | Move

#: Steps of one function: what LLVM takes for one grows faster than its length.
_MOST_STEPS: Final = 128

_COPY: Final = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"

_COUNT: Final = Template("""  %t$next = call i64 @now()
  %d$number = sub i64 %t$next, %t$number
  %c$number = getelementptr i64, ptr %nanoseconds, i64 $number
  %o$number = load i64, ptr %c$number
  %s$number = add i64 %o$number, %d$number
  store i64 %s$number, ptr %c$number""")


def profiled(name: str) -> str:
    """The symbol of the function that counts nanoseconds, beside the entry ``name``."""
    return f"{name}_profiled"


def text(name: str, steps: Sequence[EntryStep], target: Target) -> str:
    """The LLVM IR of a module that defines ``name`` and its profiled twin; kernels are declared in it."""
    entries = dict.fromkeys(step.entry for step in steps if isinstance(step, Call))
    return "\n".join(
        [
            f'target triple = "{target.triple}"',
            NOW,
            _COPY,
            *(f"declare void @{entry}(ptr)" for entry in entries),
            *_function(name, steps, "ptr %bases", counted=False),
            *_function(profiled(name), steps, "ptr %bases, ptr %nanoseconds", counted=True),
            "",
        ]
    )


def _function(name: str, steps: Sequence[EntryStep], parameters: str, *, counted: bool) -> Iterable[str]:
    """The function of all ``steps``; of many, it calls functions of some each."""
    begins = range(0, len(steps), _MOST_STEPS)
    if len(begins) > 1:
        for begin in begins:
            yield f"define internal void @{name}.{begin}({parameters}) noinline nounwind {{"
            yield from _body(begin, steps[begin : begin + _MOST_STEPS], counted)
            yield "}"
    yield f"define void @{name}({parameters}) nounwind {{"
    if len(begins) > 1:
        yield from (f"  call void @{name}.{begin}({parameters})" for begin in begins)
        yield "  ret void"
    else:
        yield from _body(0, steps, counted)
    yield "}"


def _body(first: int, steps: Sequence[EntryStep], counted: bool) -> Iterable[str]:
    """``steps``, the first of which has this number."""
    bases = 1 + max((address.base for step in steps for address in _addresses(step)), default=0)
    longest = max((len(step.arguments) for step in steps if isinstance(step, Call)), default=0)
    yield f"  %arguments = alloca [{max(1, longest)} x ptr], align 64"
    for base in range(bases):
        yield f"  %slot{base} = getelementptr ptr, ptr %bases, i64 {base}"
        yield f"  %base{base} = load ptr, ptr %slot{base}"
    if counted:
        yield f"  %t{first} = call i64 @now()"
    for number, step in enumerate(steps, first):
        yield from _step(number, step)
        if counted:
            yield _COUNT.substitute(number=number, next=number + 1)
    yield "  ret void"


def _step(number: int, step: EntryStep) -> Iterable[str]:
    for position, address in enumerate(_addresses(step)):
        yield f"  %p{number}.{position} = getelementptr i8, ptr %base{address.base}, i64 {address.offset}"
    if isinstance(step, Move):
        yield f"  call void @llvm.memcpy.p0.p0.i64(ptr %p{number}.1, ptr %p{number}.0, i64 {step.nbytes}, i1 false)"
        return
    for position in range(len(step.arguments)):
        yield f"  %a{number}.{position} = getelementptr ptr, ptr %arguments, i64 {position}"
        yield f"  store ptr %p{number}.{position}, ptr %a{number}.{position}"
    yield f"  call void @{step.entry}(ptr %arguments)"


def _addresses(step: EntryStep) -> tuple[Address, ...]:
    return step.arguments if isinstance(step, Call) else (step.source, step.target)
