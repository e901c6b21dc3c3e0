"""From facts to features: the same arithmetic for the columns of a population and for the slow reference's numbers."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import astuple, fields
from typing import Final

from ansorlite.alignment import CACHE_LINE, WHOLE_STRIDE
from ansorlite.columns.arithmetic import (
    both,
    ceil,
    either,
    equal,
    every,
    largest,
    log2,
    low_bit,
    maximum,
    minimum,
    negated,
    product,
    select,
    some,
    total,
    where,
)
from ansorlite.columns.tape import Number
from ansorlite.features.facts import ALWAYS, AccessFacts, MatrixFacts, Numbers, Operations, StatementFacts
from ansorlite.features.memory import Memory, memory
from ansorlite.features.names import ACCESSES, MATRIX
from ansorlite.features.straight_line import loads_of
from ansorlite.loops.matrix_tile import fits, pays, piece
from ansorlite.machine import amx
from ansorlite.target import Target

_NONE: Final[Mapping[Hashable, Number]] = {}
#: Lines that a core fetches ahead of those that it walks.
_AHEAD: Final = 2


def program_features(statements: Sequence[StatementFacts], target: Target) -> list[list[Number]]:
    """The features of each statement of a program."""
    # Statements outside of parallel loops share the registers of a thread with those inside of them.
    makers: dict[Hashable, Number] = {}
    if target.threads > 1:
        for s in statements:
            makers[s.name] = either(makers.get(s.name, 0), _product(s.parallel, s.trips) > 1)
    members: dict[Hashable, Number] = {}
    for s in statements:
        for team, inside in s.teams.items():
            members[team] = members.get(team, 0) + inside
    return [assemble(s, target, makers, members) for s in statements]


def assemble(
    s: StatementFacts,
    target: Target,
    makers: Mapping[Hashable, Number] = _NONE,
    members: Mapping[Hashable, Number] = _NONE,
) -> list[Number]:
    """The features of a statement, as :data:`~ansorlite.features.names.NAMES` has them.

    Args:
        makers: by stage of its program whether several threads compute it.
        members: by parallel loop how many statements are inside of it.
    """
    depths = range(len(s.trips))
    vector_trip = _product(s.vector, s.trips)
    vectors = ceil(vector_trip / s.lanes)
    iterations = product(s.trips) * s.needed
    parallel = _product(s.parallel, s.trips)
    balance = parallel / (ceil(parallel / target.threads) * target.threads)
    unrolled = _product(s.unrolled, s.trips) * vectors
    looping = [every((s.trips[d] > 1, negated(s.unrolled[d]), negated(s.vector[d]))) for d in depths]
    # Whether a vectorised loop reduces is left out: its lanes are partial results, and told apart in no machine code.
    reduce = _product([both(s.reduce[d], negated(s.vector[d])) for d in depths], s.trips) * s.needed
    branches = _product(looping, s.trips)
    ops = _operations(s)
    tile = _product([both(s.unrolled[d], negated(s.reduce[d])) for d in depths], s.trips)
    loads = loads_of(s, looping, tile, vectors, target.vector_registers)
    scalar, contiguous, strided = (
        total(where(equal(a.lane_stride, kind), n, 0) for a, n in zip(s.accesses, loads, strict=True) if not a.write)
        for kind in range(3)
    )
    crossing = total(_crossing(a, n, s.lanes) for a, n in zip(s.accesses, loads, strict=True) if not a.write)
    tiles: Sequence[Number] = [0] * len(MATRIX)
    if target.matrix_dots and s.matrix is not None:
        tiles = _tiles(s.matrix, iterations, both(some(makers.values()), equal(parallel, 1)))
    _, loaded, *_ = tiles
    moved = memory(s, looping, loaded > 0, target)
    sums = [total(level) for level in moved.traffic]
    # Tiles take whole lines: what rows that fall into few sets push out of the first cache has been used.
    sums[0] = where(loaded > 0, minimum(sums[0], loaded * amx.BYTES), sums[0])
    # A line that is stored to is fetched, and written back; unless it goes past the caches.
    written = total(t for a, t in zip(s.accesses, moved.traffic[-1], strict=True) if a.write)
    near = [(where(_is_near(a), n, 0), a.lane_step) for a, n in zip(s.accesses, loads, strict=True) if not a.write]
    work = total(ops)
    result = [
        _log(iterations), _log(parallel), balance, _share(s.teams, members),
        log2(s.lanes), _log(vector_trip), vector_trip / (vectors * s.lanes),
        _log(unrolled), _log(reduce), _log(_inner_reduce(s, looping)),
        _log(_innermost(s, looping, s.trips)), _log(branches),
        *map(_log, ops),
        s.in_registers, s.accumulates,
        _log(tile * vectors if s.accumulates else 0), _log(contiguous), _log(scalar), _log(strided),
        _log(total(n for n, _ in near)), _log(total(n * apart for n, apart in near)),
        _log(total(where(_changed(a, s, looping), 0, n) for a, n in zip(s.accesses, loads, strict=True) if not a.write)),
        _log(total(_strided_stores(a, n, s) for a, n in zip(s.accesses, loads, strict=True) if a.write)), _log(crossing),
        _log(total(moved.unique)), _log(_of_a_thread(s, moved, parallel, target.threads)),
        _log(_of_a_thread(s, moved, parallel, target.threads, constant=True)),
        *map(_log, sums), _log(where(s.streamed, 0, written)),
        *(_log(work / maximum(t, 1)) for t in sums), *map(_log, moved.runs), _log(moved.pages),
        _log(s.fetched), _log(_coherence_misses(s, parallel, moved, makers, target.threads)), *map(_log, tiles),
    ]  # fmt: skip
    for number, access in enumerate(s.accesses[:ACCESSES]):
        unique = moved.unique[number]
        result += [_log(unique), *(_log(level[number]) for level in moved.traffic), access.lane_stride, access.write]
        result += [_log(loads[number]), _log(iterations * access.item / maximum(unique, 1))]
    result += [0] * (8 * (ACCESSES - len(s.accesses)))
    return result


def _share(teams: Mapping[Hashable, Number], members: Mapping[Hashable, Number]) -> Number:
    """Of the parallel loop around a statement, what it pays of entering and leaving it: all inside pay the same."""
    return total(where(inside, 1 / maximum(members[team], 1), 0) for team, inside in teams.items())


def _of_a_thread(s: StatementFacts, moved: Memory, parallel: Number, threads: int, constant: bool = False) -> Number:
    """Bytes of the lines that the busiest thread touches: it has iterations of the outermost parallel loop in a row.

    Args:
        constant: whether only those count that are the same in every call.
    """
    share = ceil(parallel / threads) / parallel
    found = zip(s.accesses, moved.unique, strict=True)
    counted = ((access, unique) for access, unique in found if access.constant or not constant)
    return total(unique * where(_outermost(s, access.moves), share, 1) for access, unique in counted)


def _is_near(access: AccessFacts) -> Number:
    """Whether its lanes are so near to each other that whole vectors are loaded."""
    return both(access.lane_step >= 2, access.lane_step <= WHOLE_STRIDE)


def _coherence_misses(
    s: StatementFacts, parallel: Number, moved: Memory, makers: Mapping[Hashable, Number], threads: int
) -> Number:
    """How many lines the busiest thread takes that another one has written: to read them, or ahead of its own.

    What one thread computes is another one's to all others. What all compute together is, where each of them reads all of it;
    where they share it among them, each reads what it has computed. A thread has iterations in a row, so it is the outermost
    parallel loop that shares.

    Where each writes a part of every row, a core that walks its parts fetches the next lines ahead, which another one is about
    to write.
    """
    result: Number = 0
    rounds = maximum(ceil(_outermost(s, s.trips) / threads), 1)
    for access, unique, inside in zip(s.accesses, moved.unique, moved.inside, strict=True):
        of_its_own = some(both(flag, of) for flag, of in zip(s.parallel, access.renewed, strict=True))
        lines = minimum(unique / CACHE_LINE, inside * ceil(parallel / threads))
        if access.write:
            part = _run(access, _outermost(s, range(1, len(s.trips) + 1))) * rounds / CACHE_LINE
            ahead = where(_outermost(s, access.moves), lines * minimum(_AHEAD / part, 1), 0)
            result = result + where(of_its_own, 0, ahead)
        elif access.producer in makers:
            together = where(_outermost(s, access.moves), 0, 1 - 1 / threads)
            foreign = where(makers[access.producer], together, where(parallel > 1, 1, 0))
            result = result + where(of_its_own, 0, lines * foreign)
    return result


def _run(access: AccessFacts, depth: Number) -> Number:
    """Bytes of a run of neighbours among the elements that the loops below ``depth`` touch."""
    result: Number = access.item
    full: Number = 1
    for width, extent in zip(reversed(access.widths), reversed(access.extents), strict=True):
        here = select(width, depth)
        result = result * where(full, here, 1)
        full = both(full, here >= extent)
    return result


def _outermost(s: StatementFacts, of: Numbers) -> Number:
    """That of the outermost parallel loop of more than one iteration; 0 where there is none."""
    result: Number = 0
    for flag, trip, here in reversed(list(zip(s.parallel, s.trips, of, strict=True))):
        result = where(both(flag, trip > 1), here, result)
    return result


def _tiles(m: MatrixFacts, iterations: Number, alone: Number) -> list[Number]:
    """What :data:`MATRIX` says of ``iterations`` dot products; ``alone``: whether they are outside of its teams."""
    rows, columns, words = piece(m.rows), piece(m.columns), piece(m.words)
    down, across = m.outer * m.rows / rows, m.columns / columns
    used = every((m.matrix, negated(alone), fits(down, across), pays(rows, words)))
    sums = down * across
    begun = iterations / (m.around * m.outer * m.rows * m.columns * m.words)
    steps = begun * m.around * m.words / words
    moved = begun * sums
    return [where(used, each, 0) for each in (steps * sums, steps * (down + across) + moved, moved, sums)]


def _operations(s: StatementFacts) -> list[Number]:
    """Operations of each kind, as often as they are done: what no loop changes is computed before it, once for all lanes."""
    # Elements that walk in step have the facts of one: so have many operations on them.
    operands = [(ALWAYS in of, tuple(dict.fromkeys(s.accesses[i] for i in sorted(of - {ALWAYS})))) for of in s.operations]
    known = {each: _times(s, *each) * s.needed for each in dict.fromkeys(operands)}
    kinds = (astuple(counts) for counts in s.operations.values())
    return [
        total(known[each] * count for each, count in zip(operands, column, strict=True) if count)
        for column in zip(*kinds, strict=True)
    ] or [0] * len(fields(Operations))


def _times(s: StatementFacts, always: bool, read: Sequence[AccessFacts]) -> Number:
    """How often an operation on the accesses ``read`` is done; a vector of equal lanes counts as a vector."""
    result: Number = 1
    needed: Number = always
    for depth in reversed(range(len(s.trips))):
        trip = s.trips[depth]
        # Threads compute it each for themselves.
        again = s.parallel[depth]
        for reason in (*(a.moves[depth] for a in read), *(a.renewed[depth] for a in read)):
            again = either(again, reason)
        needed = either(needed, both(again, trip > 1))
        result = result * where(needed, trip, where(s.vector[depth], minimum(s.lanes, trip), 1))
    return result


def _log(x: Number) -> Number:
    return log2(1 + x)


def _product(chosen: Numbers, trips: Numbers) -> Number:
    """The product of the trips ``chosen``."""
    return product(where(flag, trip, 1) for flag, trip in zip(chosen, trips, strict=True))


def _changed(access: AccessFacts, s: StatementFacts, looping: Numbers) -> Number:
    """Whether the innermost loop of the machine code changes what is read."""
    return _innermost(s, looping, [either(a, b) for a, b in zip(access.moves, access.renewed, strict=True)])


def _innermost(s: StatementFacts, looping: Numbers, of: Numbers) -> Number:
    """That of the innermost loop of the machine code; 1 of a parallel one, of which a thread takes any iterations."""
    result: Number = 1
    for flag, parallel, here in zip(looping, s.parallel, of, strict=True):
        result = where(flag, where(parallel, 1, here), result)
    return result


def _inner_reduce(s: StatementFacts, looping: Numbers) -> Number:
    """Iterations of the reduction loops with no loop other than reductions inside of them."""
    innermost: Number = 1
    result: Number = 1
    for d in reversed(range(len(looping))):
        innermost = where(looping[d], both(innermost, s.reduce[d]), innermost)
        result = result * where(every((innermost, looping[d], s.reduce[d])), s.trips[d], 1)
    return result


def _strided_stores(access: AccessFacts, stores: Number, s: StatementFacts) -> Number:
    """Vectors whose elements are stored apart from each other.

    Iterations that store neighbours, unrolled ones or of the loop right around the vectorised one, store them as one; unless they
    begin with what makes the values, such as a tile of accumulators, or the lanes are no power of two.
    """
    if not access.widths or largest(access.lane_stride) < 2:
        return 0
    inner = access.widths[-1]
    neighbours: Number = 1
    inside: Number = 1
    passed: list[Number] = []
    for depth in reversed(range(len(s.trips))):
        real = both(s.trips[depth] > 1, negated(s.vector[depth]))
        if inner[depth] is not inner[depth + 1]:
            inside = every((inside, *map(negated, passed)))
            passed = []
            around = [inside, negated(s.parallel[depth]), *(negated(access.renewed[depth]) for access in s.accesses)]
            joined = both(real, either(s.unrolled[depth], every(around)))
            neighbours = neighbours * where(joined, inner[depth] / inner[depth + 1], 1)
        passed.append(real)
    together = where(equal(low_bit(s.lanes), s.lanes), minimum(neighbours, s.lanes), 1)
    return where(equal(access.lane_stride, 2), stores / together, 0)


def _crossing(access: AccessFacts, loads: Number, lanes: Number) -> Number:
    """Vectors loaded from anywhere in a line: as many of them cross into the next as a vector fills of one."""
    across = both(equal(access.lane_stride, 1), access.unaligned)
    return where(across, loads * minimum(lanes * access.item / CACHE_LINE, 1), 0)
