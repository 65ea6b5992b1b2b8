"""Selection of matrix work: fragment loads, and atoms whose accumulators stay in the registers they are in."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.scf import ForOp, IfOp, WhileOp
from xdsl.ir import Block, Operation, SSAValue

from tilefw.machine.inst import Slice
from tilefw.simt import lane
from tilefw.simt.chip import LaneChip
from tilefw.simt.chip_requests import FragmentAccess, Scale
from tilefw.simt.description import MatrixAtom
from tilefw.simt.lane.registers import CHUNK, per_register, size_of, type_name, vector_in
from tilefw.simt.layout.atoms import LANE_ATOM, find_atom
from tilefw.simt.select.code import Const, Element, in_order
from tilefw.simt.select.memory import MemorySelection, address_of, address_slots
from tilefw.tile.dialect.elementwise_op import ElementwiseOp


def sums_together(chip: LaneChip, value: SSAValue) -> int:
    """How many registers of a value that several places write belong together, 1 for none: those of one atom's sums, which it may
    become by element (attention scales its sums between dots), or else as many as the chip computes at once."""
    name = type_name(value.type)
    todo, seen = [value], {value}
    for one in todo:
        for use in one.uses:
            op = use.operation
            if isinstance(op, lane.AtomOp | lane.AsyncAtomOp):
                if value_added_to(op) is one and not op.atom.startswith(LANE_ATOM):
                    return find_atom(chip.description, op.atom).d_layout.registers // per_register(name)
            elif isinstance(op, ElementwiseOp) and op.results[0].type == value.type and op.results[0] not in seen:
                seen.add(op.results[0])
                todo.append(op.results[0])
    return 2 if per_register(name) == 1 and (f"addf.{name}x2" in chip.rules or _is_converted(chip, value, name)) else 1


def _is_converted(chip: LaneChip, value: SSAValue, name: str) -> bool:
    """Whether a value is read by a cast of which the chip makes two whole registers from two that stand together."""
    for use in value.uses:
        op = use.operation
        if isinstance(op, ElementwiseOp) and op.row.is_cast:
            to = type_name(op.results[0].type)
            if per_register(to) == 1 and f"{op.row.name}.{name}.{to}x2" in chip.rules:
                return True
    return False


def value_added_to(op: lane.AtomOp | lane.AsyncAtomOp) -> SSAValue:
    """The accumulator of an atom."""
    return op.acc if isinstance(op, lane.AsyncAtomOp) else op.operands[2]


def is_zero(elements: Sequence[Element]) -> bool:
    """Whether all of these are literals whose bits are zero."""
    return all(isinstance(e, Const) and not e.bits for e in elements)


class MatrixSelection:
    """Emits fragment loads and atoms; `memory` makes addresses."""

    def __init__(self, memory: MemorySelection) -> None:
        self.memory = memory
        self.values = memory.values
        self.code = memory.code
        self.chip = memory.chip
        self.description = memory.chip.description
        self._sums: set[SSAValue] = set()  # results of atoms, all of whose registers were made for them

    def fragment_load(self, op: lane.FragmentLoadOp) -> None:
        registers: list[Element] = []
        name, count, transposed, buffer, addresses = op.load, op.count, op.transposed, op.buffer, address_of(op)
        for place in address_slots(op):
            loaded = tuple(self.code.new_registers("w32", count))
            address, immediate = self.memory.address(addresses, place)
            self.chip.fragment_load(self.code, FragmentAccess(name, loaded, address, immediate, transposed, buffer))
            registers += loaded
        result = op.results[0]
        self.values.vectors[result] = vector_in(type_name(result.type), size_of(result.type), registers, True)

    def fragment_store(self, op: lane.FragmentStoreOp) -> None:
        name, count, transposed, buffer, addresses = op.store, op.count, op.transposed, op.buffer, address_of(op)
        per = per_register(type_name(op.value.type))
        for k, place in enumerate(address_slots(op)):
            stored = tuple(self.memory.packed_register(op.value, (k * count + i) * per) for i in range(count))
            address, immediate = self.memory.address(addresses, place)
            self.chip.fragment_store(self.code, FragmentAccess(name, stored, address, immediate, transposed, buffer))

    def atom(self, op: lane.AtomOp) -> None:
        atom = find_atom(self.description, op.atom)
        a, b, c = op.operands[:3]
        firsts = list(zip(*(op.firsts(name) for name in "abd"), strict=True))
        name, n = type_name(c.type), size_of(c.type)
        if op.atom.startswith(LANE_ATOM):
            sums = self._multiply_add(atom.d, a, b, c, firsts)
            self.values.vectors[op.results[0]] = vector_in(name, n, sums, False)
            return
        sums, own = self._multiply(atom, a, b, c, firsts, self.owned(op, c), self._scales(op))
        if own:
            self.own(op.results[0])
        self.values.vectors[op.results[0]] = vector_in(name, n, sums, True)

    def _multiply_add(
        self, element: str, a: SSAValue, b: SSAValue, c: SSAValue, firsts: Sequence[tuple[int, ...]]
    ) -> list[Element]:
        """The kit's own atom, a multiply-add of each lane."""
        code = self.code
        left, right, sums = (self.values.all_elements(v) for v in (a, b, c))
        for i, j, d in firsts:
            if element == "i32":
                sums[d] = code("addi.i32", code("muli.i32", left[i], right[j]), sums[d])
            else:
                sums[d] = code(f"fma.{element}", left[i], right[j], sums[d])
        return sums

    def _multiply(
        self, atom: MatrixAtom, a: SSAValue, b: SSAValue, c: SSAValue, firsts: Sequence[tuple[int, ...]], owned: bool,
        scales: Sequence[tuple[Scale, Scale]],
    ) -> tuple[list[Element], bool]:
        """The chip's atom on packed registers. A sum is written where it stands if nobody else reads that, else anew, once.

        Also says whether all registers of the sums are now theirs alone.
        """
        code, values = self.code, self.values
        left, right, sums = (values.all_packed(v) for v in (a, b, c))
        pers = [per_register(type_name(v.type)) for v in (a, b, c)]
        sizes = [layout.registers // per for layout, per in zip((atom.a_layout, atom.b_layout, atom.d_layout), pers, strict=True)]
        form = self.chip.form(type_name(c.type), False) if pers[2] == 1 else "w32"
        mine = [isinstance(s, Slice) and owned for s in sums]
        for repeat, (i, j, d) in enumerate((i // pers[0], j // pers[1], d // pers[2]) for i, j, d in firsts):
            source = sums[d : d + sizes[2]]
            if not all(mine[d : d + sizes[2]]) or (self.chip.consecutive and not in_order(source)):
                source = self._fresh(form, sums, mine, d, sizes[2])
            targets: list[Slice] = sums[d : d + sizes[2]]  # type: ignore[assignment]
            factors = left[i : i + sizes[0]], right[j : j + sizes[1]]
            if scales:
                self.chip.scaled_atom(code, atom, *factors, source, targets, *scales[repeat])
            else:
                self.chip.atom(code, atom, *factors, source, targets)
        return sums, all(mine)

    def _scales(self, op: lane.AtomOp) -> list[tuple[Scale, Scale]]:
        """The scales of A and of B for each repeat; none of an atom without."""
        columns = [
            [self._scale(value, index) for index in op.firsts(name)]
            for name, value in zip(op.SCALES, op.operands[3:], strict=False)
        ]
        return list(zip(*columns, strict=True)) if columns else []

    def _scale(self, value: SSAValue, index: int) -> Scale:
        """An element where it is: by itself, or as a byte of a packed register."""
        piece = self.values.piece(value, index // CHUNK)
        if piece.packed is None:
            return Scale(self.values.element(value, index), 0)
        per = per_register(type_name(value.type))
        return Scale(piece.packed[index % CHUNK // per], index % per)

    def _fresh(self, form: str, sums: list[Element], mine: list[bool], first: int, count: int) -> list[Element]:
        """Registers that are this op's own in the place of those of an atom's sums that are not; what the atom adds to.

        Where registers of an operand stand together, literals and registers that do not are copied into the new ones first: the
        atom then adds in its place.
        """
        source = sums[first : first + count]
        whole = range(first, first + count)
        if not self.chip.consecutive:
            for k in whole:
                if not mine[k]:
                    sums[k], mine[k] = self.code.new_register(form), True
            return source
        own = self.code.new_registers(form, count)
        sums[first : first + count], mine[first : first + count] = own, [True for _ in whole]
        if is_zero(source) or in_order(source):
            return source
        for register, element in zip(own, source, strict=True):
            self.chip.move(self.code, register, element)
        return list(own)

    def own(self, result: SSAValue) -> None:
        """Note that all registers of an atom's result were made for it."""
        self._sums.add(result)

    def owned(self, op: lane.AtomOp | lane.AsyncAtomOp, value: SSAValue) -> bool:
        """Whether the accumulator's registers are this op's to write: made for it alone, and read by nobody else.

        So are the registers of another atom and of values that control flow carries (each has registers of its own), if they have
        no other use and are defined in the same region: an atom in a loop must not change what the next iteration starts from. An
        atom in one branch, of what was carried before it, does not change what the other branch reads.
        """
        owner, around = value.owner, op.parent_op()
        if isinstance(around, IfOp) and isinstance(owner, ForOp | IfOp | WhileOp) and owner.parent is around.parent:
            users = [use.operation for use in value.uses]
            return users.count(op) == 1 and all(user is op or _in_other_branch(user, op) for user in users)
        if value.has_more_than_one_use():
            return False
        if isinstance(owner, Block):
            return owner is op.parent and isinstance(owner.parent_op(), ForOp | WhileOp)
        return owner.parent is op.parent and (value in self._sums or isinstance(owner, ForOp | IfOp | WhileOp))


def _in_other_branch(other: Operation, op: Operation) -> bool:
    """Whether an op stands in the other branch of the condition that another stands in."""
    return other.parent is not op.parent and other.parent_op() is op.parent_op()
