"""The lane ops of atomic accesses, each one step for all others, and of fences, which order what stands around them."""

from __future__ import annotations

from xdsl.ir import Attribute, SSAValue

from tilefw.simt.lane.base import GenericOp
from tilefw.simt.lane.memory import ORDERS, AccessOp
from tilefw.tile import types
from tilefw.tile.dialect.atomic_ops import KINDS, Ordered

CAS = "cas"
_REDUCTIONS = tuple(kind for kind in KINDS if kind != "xchg")
MULTICAST_LOADS = {f"multicast_load_{kind}": kind for kind in _REDUCTIONS}
MULTICAST_KINDS = frozenset({"multicast_store", *MULTICAST_LOADS, *(f"multicast_{kind}" for kind in _REDUCTIONS)})
"""Kinds whose address stands for all ranks' copies. A load has its value where the mask is off; the others have no result."""
FLOATS_THAT_PAIR = (types.f16, types.bf16)  # two of them are one word, which chips add to at once
KINDS_THAT_PAIR = frozenset({"add", "multicast_add", "multicast_load_add"})


class AtomicOp(Ordered, AccessOp):
    """Access k changes elements k·width … (k+1)·width - 1 at address[slots[k]] + immediates[k], and gives what was there.

    Operands: address, compare? (of the kind `cas`, codes), value, mask?, awaited?. The mask has one i1 an access, or is one for
    all; a masked-off access does not happen, and its result is unspecified. `kind` is one of tile IR's, `cas`, or one
    of `MULTICAST_KINDS`. The width is 1, or 2 for sums of 16-bit floats, whose pair is one aligned word. There is a result only
    where somebody asks for it.

    With `awaited` the one access is made again as long as the comparison `again` of what was there with that holds.

    Order and scope are for the whole workgroup: with a barrier, which a later pass puts in, between this op and what other lanes do
    before a release or after an acquire. `buffer` and `deal` are those of loads and stores.
    """

    name = "lane.atomic"
    result_count = None
    property_names = frozenset({
        "parts", "kind", "order", "scope", "width", "slots", "immediates", "buffer", "deal", "again",
    })
    traits = ORDERS

    @property
    def waits(self) -> bool:
        """Whether the access is made again until it finds what is awaited: all that stands behind it depends on its end."""
        return self.part("awaited") is not None

    @property
    def kind(self) -> str:
        return self.word("kind")

    @property
    def width(self) -> int:
        return self.integer("width")

    @property
    def value(self) -> SSAValue:
        """What is combined with the old value, or takes its place."""
        value = self.part("value")
        assert value is not None
        return value

    @property
    def accessed(self) -> Attribute:
        """The type of the accessed elements."""
        return self.value.type

    def problem(self) -> str | None:
        if self.part("value") is None:
            return "there is no value"
        return (
            self._word_problem() or self._value_problem() or self._width_problem()
            or self.address_problem("address", "slots", "immediates") or self.mask_problem("mask", (1, len(self.slots)))
        )

    def _word_problem(self) -> str | None:
        if self.kind not in (*KINDS, CAS, *MULTICAST_KINDS):
            return f"the kind {self.kind!r} is none of {', '.join((*KINDS, CAS))}"
        return self.order_problem()

    def _value_problem(self) -> str | None:
        compare = self.part("compare")
        if (compare is not None) != (self.kind == CAS):
            return "a comparison belongs to the kind cas alone"
        awaited = self.part("awaited")
        if (awaited is not None) != bool(self.word("again")) or (awaited is not None and len(self.slots) != 1):
            return "what is awaited comes with a comparison, of one access"
        told = (("comparison", compare), ("awaited", awaited))
        for name, type in (*((n, v.type) for n, v in told if v is not None), *(("result", r.type) for r in self.results)):
            if type not in (None, self.accessed):
                return f"the {name} is {type}, the value {self.accessed}"
        return "there are several results" if len(self.results) > 1 else None

    def _width_problem(self) -> str | None:
        n, width = types.shape_of(self.accessed), self.width
        if len(n) != 1 or len(self.slots) * width != n[0]:
            return f"{len(self.slots)} accesses of {width} elements are not {self.accessed}"
        if width == 1 or (width == 2 and self.kind in KINDS_THAT_PAIR and types.element_of(self.accessed) in FLOATS_THAT_PAIR):
            return None
        return f"{width} elements of {types.element_of(self.accessed)} are not an atomic access of the kind {self.kind}"


class FenceOp(Ordered, GenericOp):
    """Tile IR's: an order for the whole workgroup, with barriers, put in by a later pass, between it and what other lanes do."""

    name = "lane.fence"
    operand_count = 0
    result_count = 0
    property_names = frozenset({"order", "scope"})
    traits = ORDERS

    def problem(self) -> str | None:
        return self.order_problem()
