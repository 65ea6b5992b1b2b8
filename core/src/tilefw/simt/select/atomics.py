"""Selection of atomic accesses: those that the chip makes by one instruction, and a loop of compare-and-swaps for all others.

The loop holds what it takes memory to hold, asks for it to be exchanged for what it should become, and goes on where somebody was
faster, until no lane of the wave is left: control flow stays uniform. A few accesses of a lane go round together. An element of 16
bits is changed within its aligned word, where the chip compares no narrower one.

Where one instruction makes all of an op's accesses it has the op's order; several are relaxed, between two fences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tilefw.api.errors import UnsupportedError
from tilefw.machine.inst import Slice
from tilefw.simt import lane
from tilefw.simt.chip_requests import AtomicAccess
from tilefw.simt.lane.registers import bits_of, form_of, type_name, vector_in
from tilefw.simt.select import declared
from tilefw.simt.select.code import Const, Element
from tilefw.simt.select.exchanged_word import BY_SIGN, ExchangedWord, HalfWord, RequestedAtomic, half_of, word_of
from tilefw.simt.select.memory import MemorySelection, address_of, address_slots
from tilefw.tile.text.source_location import place_of

_TOGETHER = 4  # accesses of a lane in one loop: their round trips overlap, and each holds some three registers
_TRUE, _RELAXED = Const("i1", 1), "relaxed"


@dataclass(frozen=True, slots=True)
class _Native:
    """The chip's accesses for one of an op, of which each lane makes one; `half` where that is to the word around it."""

    calls: Sequence[AtomicAccess]
    half: ExchangedWord | None

    def found(self) -> Element | None:
        """What was there, where somebody asks."""
        old = self.calls[0].result
        return old if old is None or self.half is None else self.half.found(old)


class AtomicSelection:
    """Emits atomics; `memory` gives guards and addresses."""

    def __init__(self, memory: MemorySelection) -> None:
        self.memory = memory
        self.values = memory.values
        self.code = memory.code
        self.chip = memory.chip

    def atomic(self, op: lane.AtomicOp) -> None:
        """All accesses of an op, and its result."""
        if op.waits:
            self._until(op)
            return
        count = len(op.slots)
        requests = {k: access for k in range(count) if (access := self._wanted(op, k)) is not None}
        made = [self._native(op, access) for access in requests.values()]
        first = made[0] if made else None
        if count == 1 and first is not None and len(first.calls) == 1:
            self._access(first.calls[0])
            found = [first.found()]
        else:
            if op.releases and requests:
                self._fence("release", op.scope)
            found = self._relaxed(op, list(requests.values()), made)
            if op.acquires and requests:
                self._fence("acquire", op.scope)
        if op.results:
            self._define(op, dict(zip(requests, found, strict=True)))

    def fence(self, op: lane.FenceOp) -> None:
        """A fence of its own."""
        self._fence(op.order, op.scope)

    def _access(self, access: AtomicAccess) -> None:
        declared.act(self.chip, self.code, "atomic accesses", lambda: self.chip.atomic(self.code, access))

    def _fence(self, order: str, scope: str) -> None:
        declared.act(self.chip, self.code, "fences", lambda: self.chip.fence(self.code, order, scope))

    def _until(self, op: lane.AtomicOp) -> None:
        """An access that is made again as long as the lane that makes it waits for what it finds; waves without it go on."""
        code, chip, awaited = self.code, self.chip, op.part("awaited")
        wanted = self._wanted(op, 0)
        if wanted is None or awaited is None:
            return
        other, first = self.values.element(awaited), self._native(op, wanted)
        if op.releases:
            self._fence("release", op.scope)
        head = code.label("again")
        code.start(head)
        code.scopes.append({})
        (old,) = self._relaxed(op, [wanted], [first])
        assert old is not None
        waits = code(f"{op.word('again')}.{type_name(op.accessed)}", old, other)
        chip.branch_if(code, chip.any_lane(code, self._also(wanted.predicate, waits)), head, False)
        code.scopes.pop()
        code.start(code.label("found"))
        if op.acquires:
            self._fence("acquire", op.scope)
        if op.results:
            self._define(op, {0: old})

    def _relaxed(
        self, op: lane.AtomicOp, requests: Sequence[RequestedAtomic], made: Sequence[_Native | None]
    ) -> list[Element | None]:
        """Accesses without an order among themselves: what each found."""
        found: list[Element | None] = []
        for native in made:
            for call in native.calls if native else ():
                self._access(replace(call, order=_RELAXED))
            found.append(native.found() if native else None)
        looped = [i for i, native in enumerate(made) if native is None]
        for first in range(0, len(looped), _TOGETHER):
            some = looped[first : first + _TOGETHER]
            for i, old in zip(some, self._loop(op, [requests[i] for i in some]), strict=True):
                found[i] = old
        return found

    def _define(self, op: lane.AtomicOp, found: dict[int, Element | None]) -> None:
        """The result: in packed registers where an access takes two elements."""
        name = type_name(op.accessed)
        nothing = Const(f"i{op.width * bits_of(name)}", 0)
        registers = [found.get(k) or nothing for k in range(len(op.slots))]
        self.values.vectors[op.results[0]] = vector_in(name, len(op.slots) * op.width, registers, op.width > 1)

    # -- accesses

    def _wanted(self, op: lane.AtomicOp, k: int) -> RequestedAtomic | None:
        """Access `k`; None where it never happens."""
        predicate = self.memory.guard(op.part("mask"), k)
        if isinstance(predicate, Const):
            return None
        name, width = type_name(op.accessed), op.width
        bits = bits_of(name) * width
        typed_by_name = op.kind == "add" or op.kind in lane.MULTICAST_KINDS
        type = (name if width == 1 else f"{name}x{width}") if typed_by_name else f"i{bits}"
        held = () if op.kind in lane.MULTICAST_LOADS else (op.part("compare"), op.value)
        parts = [part for part in held if part is not None]
        operands = [self.values.element(p, k) if width == 1 else self.values.register(p, width * k) for p in parts]
        literal = type if width == 1 else "packed"
        typed = tuple(Const(literal, o.bits) if isinstance(o, Const) else o for o in operands)
        address, immediate = self.memory.address(address_of(op), address_slots(op)[k])
        return RequestedAtomic(op.kind, type, bits, typed, address, immediate, predicate)

    def _native(self, op: lane.AtomicOp, request: RequestedAtomic) -> _Native | None:
        """The chip's own accesses for one; None where it has none."""
        pair = f"{request.type}x2"
        if f"{request.kind}.{request.type}" not in self.chip.atomics and f"{request.kind}.{pair}" in self.chip.atomics:
            half = half_of(self.code, self.chip, request)
            where = {"address": half.address, "immediate": half.immediate}
            operands = () if request.kind in lane.MULTICAST_LOADS else (half.sum_operand(),)
            sums = replace(request, type=pair, bits=2 * request.bits, operands=operands, **where)
            return self._made(op, sums, [(request.kind, request.predicate)], half)
        signs = self._by_sign(request) if request.kind in BY_SIGN else [(request.kind, request.predicate)]
        served = all(f"{kind}.{request.type}" in self.chip.atomics for kind, _ in signs)
        if not served and op.kind in lane.MULTICAST_KINDS:
            raise UnsupportedError(
                f"{self.chip.name} has no access {request.kind}.{request.type}, which its target claims", code="TFW0625",
                place=place_of(op), help="leave its capability `multicast.…` out: core then makes a loop over the ranks",
            )
        return self._made(op, request, signs, None) if served else None

    def _made(
        self, op: lane.AtomicOp, request: RequestedAtomic, signs: Sequence[tuple[str, Slice | None]], half: ExchangedWord | None
    ) -> _Native:
        result = None
        if op.results:
            result = self.code.new_register(form_of(f"i{request.bits}"))
            if any(predicate is not None for _, predicate in signs):
                self.chip.move(self.code, result, Const(f"i{request.bits}", 0))
        where, facts = (request.address, request.immediate), (op.buffer, op.order, op.scope)
        calls = [AtomicAccess(kind, request.type, request.operands, result, *where, predicate, *facts) for kind, predicate in signs]
        return _Native(calls, half)

    def _by_sign(self, request: RequestedAtomic) -> list[tuple[str, Slice | None]]:
        """A maximum or minimum of floats as one of their codes: the kinds, and for which lanes."""
        plain, signed = BY_SIGN[request.kind]
        operand = request.operands[0]
        if isinstance(operand, Const):
            return [(signed if operand.bits >> request.bits - 1 else plain, request.predicate)]
        zero = Const(request.type, 0)
        return [
            (kind, self._also(request.predicate, self.code(f"{row}.{request.type}", operand, zero)))
            for kind, row in ((plain, "ges"), (signed, "lts"))
        ]

    def _also(self, predicate: Slice | None, other: Slice) -> Slice:
        return other if predicate is None else self.code("andi.i1", predicate, other)

    # -- loops

    def _loop(self, op: lane.AtomicOp, requests: Sequence[RequestedAtomic]) -> list[Element]:
        """Compare-and-swaps until all lanes have made their accesses; what each found."""
        code, chip = self.code, self.chip
        words = [word_of(self.code, self.chip, access) for access in requests]
        states = [self._start(op, word, access) for word, access in zip(words, requests, strict=True)]
        head = code.label("retry")
        code.start(head)
        code.scopes.append({})
        news = [word.changed(old) for word, (old, _) in zip(words, states, strict=True)]
        left: list[Element] = []
        for word, (old, pending), new in zip(words, states, news, strict=True):
            found = code.new_register(form_of(word.type))
            chip.move(code, found, old)  # where nothing is left to do it stays so, as where the exchange was made
            self._access(self._call(op, word, lane.CAS, (old, new), found, pending))
            left.append(code(f"nei.{word.type}", found, old))
            chip.move(code, old, found)
        for (_, pending), more in zip(states, left, strict=True):
            chip.move(code, pending, more)
        again = left[0]
        for more in left[1:]:
            again = code("ori.i1", again, more)
        chip.branch_if(code, chip.any_lane(code, again), head, False)
        code.scopes.pop()
        code.start(code.label("done"))
        return [word.found(old) for word, (old, _) in zip(words, states, strict=True)]

    def _start(self, op: lane.AtomicOp, word: ExchangedWord, request: RequestedAtomic) -> tuple[Slice, Slice]:
        """What memory is first taken to hold, and for which lanes the access is still to be made."""
        code, chip = self.code, self.chip
        old, pending = code.new_register(form_of(word.type)), code.new_register("i1")
        # The word around a half may end behind the array, where an atomic alone may reach.
        loads = f"load.{word.type}" in chip.atomics and not isinstance(word, HalfWord)
        if request.predicate is not None or not loads:
            chip.move(code, old, Const(word.type, 0))  # without a load the first exchange tells
        if loads:
            self._access(self._call(op, word, "load", (), old, request.predicate))
        chip.move(code, pending, _TRUE if request.predicate is None else request.predicate)
        return old, pending

    def _call(
        self, op: lane.AtomicOp, word: ExchangedWord, kind: str, operands: tuple[Element, ...], result: Slice,
        predicate: Slice | None,
    ) -> AtomicAccess:
        return AtomicAccess(
            kind, word.type, operands, result, word.address, word.immediate, predicate, op.buffer, _RELAXED, op.scope
        )
