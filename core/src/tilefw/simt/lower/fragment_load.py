"""When a read of shared memory in a layout is a series of fragment loads, and which addresses the lanes give; pure algebra on bits.

A fragment load (`description.FragmentLoad`) spreads a row's bytes over the lowest lane bits and the rows over the bits above. So
a layout is read by it when the offsets of its bits are just these: registers and lanes choose the place within a row, lanes the
row, and all that is left (further registers, waves) moves whole rows. Transposed, rows and cells of a row change places.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Attribute, SSAValue

from tilefw.api.integers import log2
from tilefw.simt import lane
from tilefw.simt.description import FragmentLoad
from tilefw.simt.layout import LinearLayout
from tilefw.simt.layout.shared import SharedLayout
from tilefw.simt.lower.shared_address import SharedAccessContext, addresses
from tilefw.tile.dialect.base import dense_i64, integer_attr, string_attr

REGISTER_BITS = 32  # what a matrix is in every lane


@dataclass(frozen=True)
class FragmentRead:
    """A layout's read as accesses of `count` matrices each. Offsets are bytes from the start of the buffer.

    A lane's row of access k is at the XOR of `thread[i]` over the bits set in its thread index, XOR `constants[k]`; constants move
    whole rows, and so do the thread's bits. `order[r]` is the loaded element that register r of the layout is.
    """

    load: FragmentLoad
    transposed: bool
    count: int
    thread: tuple[int, ...]
    constants: tuple[int, ...]
    order: tuple[int, ...]


def match(
    shared: SharedLayout, layout: LinearLayout, bits: int, loads: Sequence[FragmentLoad], flip: int = 0
) -> FragmentRead | None:
    """The fragment loads that read `layout` of a buffer with elements of `bits` bits; None when there are none.

    `flip` is XORed to the flat index of every element of the layout: the same read elsewhere in the buffer.
    """
    if bits not in (8, 16, 32):
        return None
    size = bits // 8
    registers, lanes, waves = ([o * size for o in shared.offsets(part)] for part in (layout.register, layout.lane, layout.wave))
    start = shared.offset(flip) * size
    for load in loads:
        for rule in (_straight, _crosswise) if load.transposed else (_straight,):
            places = rule(load, bits, registers, lanes)
            if places is not None:
                found = _fragment_read(load, rule is _crosswise, places, registers, waves, start)
                if found is not None:
                    return found
    return None


_Places = tuple[list[int], list[int]]
"""The register bits that stand within a register, lowest first, and for each row bit of a matrix the offset that it adds."""


def _straight(load: FragmentLoad, bits: int, registers: Sequence[int], lanes: Sequence[int]) -> _Places | None:
    """Registers hold consecutive elements, the lowest lane bits choose the word of the row, the others the row."""
    words = log2(load.row_bytes * 8 // REGISTER_BITS)
    inner = [bits // 8 << i for i in range(log2(REGISTER_BITS // bits))]
    across = [REGISTER_BITS // 8 << i for i in range(words)]
    if len(lanes) != words + log2(load.rows) or list(lanes[:words]) != across or any(o not in registers for o in inner):
        return None
    return [registers.index(o) for o in inner], list(lanes[words:])


def _crosswise(load: FragmentLoad, bits: int, registers: Sequence[int], lanes: Sequence[int]) -> _Places | None:
    """Registers hold cells of consecutive rows: their upper bits and the lowest lane bits choose the row, the others the cell."""
    cells = load.row_bytes * 8 // load.cell_bits
    if bits > load.cell_bits or cells != load.rows:
        return None
    inner = [bits // 8 << i for i in range(log2(load.cell_bits // bits))]
    across = [load.cell_bits // 8 << i for i in range(log2(cells))]
    over = log2(REGISTER_BITS // load.cell_bits)
    rows = log2(load.rows) - over
    if list(lanes[rows:]) != across or any(o not in registers for o in inner):
        return None
    held = [registers.index(o) for o in inner]
    moving = [i for i, o in enumerate(registers) if i not in held and o % load.row_bytes == 0]
    if len(moving) < over:
        return None
    return [*held, *moving[:over]], [*(registers[i] for i in moving[:over]), *lanes[:rows]]


def _fragment_read(
    load: FragmentLoad, transposed: bool, places: _Places, registers: Sequence[int], waves: Sequence[int], start: int
) -> FragmentRead | None:
    """The series of accesses, if everything but the place within a matrix moves whole rows."""
    held, rows = places
    free = [i for i in range(len(registers)) if i not in held]
    if any(o % load.row_bytes for o in (start, *rows, *waves, *(registers[i] for i in free))):
        return None
    together = free[: log2(load.most)]
    apart = free[len(together) :]
    matrices = [registers[i] for i in together]
    # Lanes beyond the last matrix give an address that nobody reads.
    idle = [0] * (log2(load.most) - len(together))
    lanes = log2(load.rows * load.row_bytes * 8 // REGISTER_BITS)
    thread = ([*rows, *matrices, *idle] + [0] * lanes)[:lanes]
    constants = [start]
    for i in apart:
        constants += [c ^ registers[i] for c in constants]
    place = {i: k for k, i in enumerate((*held, *together, *apart))}
    order = [sum((r >> i & 1) << place[i] for i in place) for r in range(1 << len(registers))]
    return FragmentRead(load, transposed, 1 << len(together), (*thread, *waves), tuple(constants), tuple(order))


def emit(
    context: SharedAccessContext, address: SSAValue, read: FragmentRead, element: Attribute, properties: Mapping[str, Attribute]
) -> SSAValue:
    """The read's elements as a lane value. `address` is where the buffer (or its slot) begins, an i32 that rows are aligned from;
    `properties` say which buffer it is (`lane.shared_properties`)."""
    b = context.builder
    where, slots, immediates = addresses(context, address, read.thread, read.constants)
    found = {
        "parts": string_attr("address"), "load": string_attr(read.load.name), "count": integer_attr(read.count),
        "slots": dense_i64(tuple(slots)), "immediates": dense_i64(tuple(immediates)), **properties,
    }
    if read.transposed:
        found["transposed"] = UnitAttr()
    op = lane.FragmentLoadOp.create(operands=[where], result_types=[lane.vector(len(read.order), element)], properties=found)
    return b.pick(b.insert(op).results[0], read.order)
