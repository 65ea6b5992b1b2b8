"""Selection of products that a matrix unit makes by itself: their sums stay in the registers they are in until the wait."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from tilefw.machine.inst import Slice
from tilefw.simt import lane
from tilefw.simt.chip_requests import SharedSource
from tilefw.simt.description import MatrixAtom
from tilefw.simt.lane.registers import per_register, size_of, type_name, vector_in
from tilefw.simt.layout.atoms import find_atom
from tilefw.simt.select.code import Const, Element
from tilefw.simt.select.matrix import MatrixSelection, is_zero


class ProductSelection:
    """Emits asynchronous atoms and waits for them; `matrix` knows whose registers sums are in."""

    def __init__(self, matrix: MatrixSelection) -> None:
        self.matrix = matrix
        self.values = matrix.values
        self.code = matrix.code
        self.chip = matrix.chip
        self._factors: dict[SSAValue, dict[Slice, None]] = {}  # the registers that products read operands from

    def start(self, op: lane.AsyncAtomOp) -> None:
        """All atoms of one product. Sums begin as zeros without registers that hold any: their first atom does not add."""
        atom, acc = find_atom(self.chip.description, op.atom), op.acc
        per, name = per_register(type_name(acc.type)), type_name(acc.type)
        size = atom.d_layout.registers // per
        sources = [self._sources(op, atom, side) for side in op.SIDES]  # before sums, which moves may begin
        sums, fresh = self._sums(op, per)
        held = dict.fromkeys(each for source in sources for one in source if not isinstance(one, SharedSource) for each in one)
        self.chip.begin_products(self.code, list(held))
        touched: set[int] = set()
        for j, first in enumerate(d // per for d in op.numbers("d")):
            adds = Const("i1", int(first in touched or first not in fresh))
            touched.add(first)
            a, b = (source[j] for source in sources)
            self.chip.asynchronous_atom(self.code, atom, a, b, sums[first : first + size], adds)
        self.chip.commit_products(self.code)
        self.matrix.own(op.results[0])
        self.values.vectors[op.results[0]] = vector_in(name, size_of(acc.type), list(sums), True)

    def _sums(self, op: lane.AsyncAtomOp, per: int) -> tuple[list[Slice], set[int]]:
        """The registers of the sums, and where in them those of atoms begin that are not defined yet, as they would be zeros."""
        code, found = self.code, self.values.all_packed(op.acc)
        name = type_name(op.acc.type)
        form = self.chip.form(name, False) if per == 1 else "w32"
        if self.matrix.owned(op, op.acc) and all(isinstance(each, Slice) for each in found):
            return [each for each in found if isinstance(each, Slice)], set()
        size = find_atom(self.chip.description, op.atom).d_layout.registers // per
        sums: list[Slice] = []
        fresh: set[int] = set()
        for first in range(0, len(found), size):
            source, own = found[first : first + size], code.new_registers(form, size)
            if is_zero(source):
                fresh.add(first)
            else:
                for register, element in zip(own, source, strict=True):
                    self.chip.move(code, register, element)
            sums += own
        return sums, fresh

    def _sources(self, op: lane.AsyncAtomOp, atom: MatrixAtom, side: str) -> Sequence[Sequence[Slice] | SharedSource]:
        """An operand for each atom."""
        value, firsts = op.part(side), op.numbers(side)
        if value is not None:
            per = per_register(type_name(value.type))
            layout = atom.a_layout if side == "a" else atom.b_layout
            form = self.chip.form(type_name(value.type), False) if per == 1 else "w32"
            packed, size = [self._held(each, form) for each in self.values.all_packed(value)], layout.registers // per
            self._factors.setdefault(value, {}).update(dict.fromkeys(packed))
            return [packed[first // per : first // per + size] for first in firsts]
        address = op.part(f"{side}_address")
        assert address is not None
        forms = atom.a_forms if side == "a" else atom.b_forms
        form, stride = forms[op.number(f"{side}_form")], op.number(f"{side}_stride")
        found: list[Sequence[Slice] | SharedSource] = []
        for slot, first in zip(op.numbers(f"{side}_slots"), firsts, strict=True):
            found.append(SharedSource(*self.matrix.memory.address(address, (slot, first)), form, stride))
        return found

    def _held(self, element: Element, form: str) -> Slice:
        """An element in a register: a literal in one of its own, which is written before products begin."""
        if isinstance(element, Slice):
            return element
        register = self.code.new_register(form)
        self.chip.move(self.code, register, element)
        return register

    def wait(self, op: lane.AtomWaitOp) -> None:
        """For products; their sums are named, so that nothing moves over it, and their factors, which stand there until then."""
        sums: list[Element] = [element for value in op.results_done for element in self.values.all_packed(value)]
        named = [each for each in dict.fromkeys(sums) if isinstance(each, Slice)]
        factors = dict.fromkeys(each for value in op.factors_read for each in self._factors.get(value, ()))
        self.chip.wait_products(self.code, op.pending, named, list(factors))
