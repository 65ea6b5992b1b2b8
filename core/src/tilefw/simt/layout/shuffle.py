"""Plans a conversion within waves: rounds in which every lane gives one register and takes another lane's.

Target register r of thread t wants an element that the source has in a register and a lane that are linear in r and t. A
round must take one register from each lane. So the target's registers are renumbered, r = ρ ^ receive(t), such that for each
ρ the source lane differs for all t; the register that a lane gives is then a function of the lane, Aρ ^ send(lane). Registers
change places by selects where `send` and `receive` are not zero, and a round whose lanes are their own needs no shuffle. All ρ
with the same lanes go in one vector, which packs small elements.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tilefw.api.integers import ceil_div
from tilefw.simt.layout import LinearLayout, f2
from tilefw.simt.layout.pattern import CYCLE_SLOTS
from tilefw.simt.lower.shared_address import stages

_WORD = 32  # a shuffle moves a register of 32 bits


@dataclass(frozen=True)
class Round:
    """From lane `lanes`(thread) XOR `lane`: its registers `given`, to be the registers `taken`."""

    lane: int
    given: tuple[int, ...]
    taken: tuple[int, ...]


@dataclass(frozen=True)
class Shuffle:
    """No element leaves its wave. `send`, `lanes`, `receive` have a column for each bit of the thread index.

    First register i becomes the source's i XOR send(thread); then come the rounds; of what they brought, register r of the
    target is r XOR receive(thread). `exact`: lanes(thread) is the thread's own lane, so a round is a XOR. `cost` and `reason` as in
    `convert.RegisterMove`.
    """

    send: tuple[int, ...]
    lanes: tuple[int, ...]
    receive: tuple[int, ...]
    exact: bool
    rounds: tuple[Round, ...]
    cost: float
    reason: str = ""

    def moves(self, round: Round) -> bool:
        """Whether a round takes other lanes' registers."""
        return not self.exact or round.lane != 0

    def instructions(self, bits: int) -> int:
        """How many shuffles of registers there are."""
        return sum(_shuffled_words(len(r.given), bits) for r in self.rounds if self.moves(r))


def _shuffled_words(elements: int, bits: int) -> int:
    return ceil_div(elements * bits, _WORD)


@dataclass(frozen=True, slots=True)
class _HardwareIndex:
    """A place in the source's wave, or a difference of two."""

    register: int
    lane: int

    def __xor__(self, other: _HardwareIndex) -> _HardwareIndex:
        return _HardwareIndex(self.register ^ other.register, self.lane ^ other.lane)


class _SourceLayout:
    """Where a wave has an element."""

    def __init__(self, layout: LinearLayout) -> None:
        self._split = len(layout.register)
        columns = layout.register + layout.lane
        self._registers = f2.Subspace(layout.register)
        self._all = f2.Subspace(columns)
        self._lane = layout.lane
        # What leads to a copy of the same element: differences of places that change nothing.
        self.copies = [self._hardware_index(k) for k in f2.kernel(columns)]

    def _hardware_index(self, used: int) -> _HardwareIndex:
        return _HardwareIndex(used & ((1 << self._split) - 1), used >> self._split)

    def find(self, element: int) -> _HardwareIndex | None:
        """In lane 0 where it can be."""
        used = self._all.solve(element)
        return None if used is None else self._hardware_index(used)

    def find_all(self, elements: Iterable[int]) -> list[_HardwareIndex] | None:
        """Places of all of them; None when the wave lacks one."""
        found = self._all.solve_all(elements)
        return None if found is None else [self._hardware_index(used) for used in found]

    def near(self, element: int, bit: int) -> _HardwareIndex | None:
        """The place in the lane `bit` itself."""
        used = self._registers.solve(element ^ self._lane[bit])
        return None if used is None else _HardwareIndex(used, 1 << bit)


def shuffle(source: LinearLayout, target: LinearLayout, bits: int, flip: int) -> Shuffle | None:
    """The rounds that bring a tile from `source` to `target`; None when elements leave their wave, or a round cannot be had."""
    places = _SourceLayout(source)
    start = places.find_all([flip])
    registers = places.find_all(target.register)
    waves = places.find_all(a ^ b for a, b in zip(target.wave, source.wave, strict=True))
    if start is None or registers is None or waves is None:
        return None
    threads = _threads(places, target, registers)
    if threads is None:
        return None
    receive, lanes = threads
    columns = [*lanes, *waves]
    receive += [0] * len(waves)
    return _rounds(_send(columns, len(lanes)), columns, receive, registers, start[0], len(lanes), bits)


def _threads(
    places: _SourceLayout, target: LinearLayout, registers: list[_HardwareIndex]
) -> tuple[list[int], list[_HardwareIndex]] | None:
    """For each lane bit the renumbering of registers, and the place that the renumbered register 0 comes from.

    The lanes of the places are independent, but for lane bits of which the target holds copies.
    """
    receive: list[int] = []
    found: list[_HardwareIndex] = []
    lanes = f2.Subspace()
    elements = f2.Subspace(target.register)
    for bit, element in enumerate(target.lane):
        near = places.near(element, bit)
        place = near if near is not None else places.find(element)
        if place is None:
            return None
        step = (0, place)
        if place.lane in lanes:
            chosen = _copied(elements, element, found, len(target.register)) or _free(place, bit, lanes, places, registers)
            if chosen is None:
                return None
            step = chosen
        receive.append(step[0])
        found.append(step[1])
        lanes.add(step[1].lane)
        elements.add(element ^ f2.apply(target.register, step[0]))
    return receive, found


def _copied(elements: f2.Subspace, element: int, found: list[_HardwareIndex], registers: int) -> tuple[int, _HardwareIndex] | None:
    """A lane bit that repeats what registers and lower lane bits have takes it from where these do."""
    used = elements.solve(element)
    if used is None:
        return None
    place = _HardwareIndex(0, 0)
    for i, earlier in enumerate(found):
        if used >> registers >> i & 1:
            place ^= earlier
    return used & ((1 << registers) - 1), place


def _free(
    place: _HardwareIndex, bit: int, lanes: f2.Subspace, places: _SourceLayout, registers: list[_HardwareIndex]
) -> tuple[int, _HardwareIndex] | None:
    """Another lane for a bit whose lanes are taken: by a copy in the source, else by another register, best the bit's own lane."""
    for copy in places.copies:
        if place.lane ^ copy.lane not in lanes:
            return 0, place ^ copy
    own = f2.solve([p.lane for p in registers], place.lane ^ 1 << bit) if 1 << bit not in lanes else None
    if own is not None:
        for i, p in enumerate(registers):
            if own >> i & 1:
                place ^= p
        return own, place
    for i, p in enumerate(registers):
        if place.lane ^ p.lane not in lanes:
            return 1 << i, place ^ p
    return None


def _send(columns: list[_HardwareIndex], lane_bits: int) -> list[int]:
    """The register that a thread gives in the round of ρ = 0, as a function of its own index: one column a thread bit."""
    # Wave bits stay what they are, so that columns are told apart by them too.
    places = [p.lane | (1 << i if i >= lane_bits else 0) for i, p in enumerate(columns)]
    # Lanes that no thread asks may give anything.
    span = f2.Subspace((*places, *f2.complete(places, len(columns))))
    registers = [p.register for p in columns] + [0] * len(columns)
    asked = span.solve_all(f2.identity(len(columns)))
    assert asked is not None, "columns that are completed span everything"
    return list(f2.compose(registers, asked))


def _rounds(
    send: list[int], columns: list[_HardwareIndex], receive: list[int], registers: list[_HardwareIndex], start: _HardwareIndex,
    lane_bits: int, bits: int,
) -> Shuffle:
    given, lane = (f2.table([getattr(p, part) for p in registers]) for part in ("register", "lane"))
    groups: dict[int, tuple[list[int], list[int]]] = {}
    for r, (register, where) in enumerate(zip(given, lane, strict=True)):
        away = where ^ start.lane
        pair = groups.setdefault(away, ([], []))
        pair[0].append(register ^ start.register ^ f2.apply(send, away))
        pair[1].append(r)
    rounds = tuple(Round(away, tuple(g), tuple(t)) for away, (g, t) in sorted(groups.items()))
    lanes = tuple(p.lane for p in columns)
    exact = lanes == (*f2.identity(lane_bits), *([0] * (len(columns) - lane_bits)))
    found = Shuffle(tuple(send), lanes, tuple(receive), exact, rounds, 0.0)
    return Shuffle(found.send, lanes, found.receive, exact, rounds, _cost(found, bits))


def _cost(plan: Shuffle, bits: int) -> float:
    """Shuffles, selects (small elements are taken apart for them) and what packs small elements anew."""
    registers = sum(len(r.taken) for r in plan.rounds)
    selects = len(stages(plan.receive)) * registers + len(stages(plan.send)) * sum(len(r.given) for r in plan.rounds)
    packing = _shuffled_words(registers, bits) if bits < _WORD else 0
    words = max(1, bits // _WORD)
    return plan.instructions(bits) * (1 + CYCLE_SLOTS) + selects * (2 if bits < _WORD else words) + packing
