"""Lane IR to machine code: elementwise ops are selected when something needs them, a chunk of elements at a time.

A store or load asks for the registers it takes; that selects the chain behind them for those elements only, depth
first, so that a long chain over many elements never holds whole intermediate vectors (a gelu over 64 elements:
72 registers instead of 192). What nothing asks for is never selected. Memory, barriers and control flow keep their order; values
that a region uses are selected before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.dialects.scf import ForOp, IfOp, WhileOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from tilefw.api.errors import InternalError
from tilefw.machine.coalesce import coalesce
from tilefw.machine.function_op import FuncOp as MachineFuncOp
from tilefw.machine.inst import Function, Slice
from tilefw.machine.liveness import eliminate_dead
from tilefw.simt import lane
from tilefw.simt.chip import Access, LaneChip
from tilefw.simt.code import Code, Const, Element
from tilefw.simt.combine import combine
from tilefw.simt.expand.base import check_rules
from tilefw.simt.literals import float_bits
from tilefw.simt.parameters import parameters
from tilefw.simt.places import place_of
from tilefw.simt.values import CHUNK, Piece, Vector, bits_of, form_of, type_name
from tilefw.tile import types
from tilefw.tile.elementwise import ElementwiseOp


@dataclass(frozen=True)
class LaneToMachine(ModulePass):
    """Selects instructions of `chip` for every function."""

    name = "lane-to-machine"
    chip: LaneChip
    target: str

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [f for f in op.body.block.ops if isinstance(f, FuncOp)]:
            machine = select(function, self.chip, self.target)
            op.body.block.insert_op_before(MachineFuncOp.of(machine), function)
            function.detach()
            function.erase()


def select(function: FuncOp, chip: LaneChip, target: str) -> Function:
    """The machine code of one lane function; raises PluginError (TFW0510) for a chip without the base set."""
    check_rules(chip.name, chip.rules)
    warps = function.attributes["lane.warps"].value.data  # type: ignore[attr-defined]
    attributes = {"workgroup": [chip.lanes * warps, 1, 1], "parameters": parameters(function, chip.pointer_bits)}
    machine = Function(function.sym_name.data, target, attributes)
    Selector(machine, chip).function(function)
    eliminate_dead(machine, chip.table)
    if chip.combiner is not None and combine(machine, chip.combiner):
        eliminate_dead(machine, chip.table)
    if len(machine.blocks) > 1:
        coalesce(machine, chip.table)
    return machine


class Selector:
    """One function's selection; `values` maps lane values to their vectors of registers."""

    def __init__(self, machine: Function, chip: LaneChip) -> None:
        self.chip = chip
        self.code = Code(machine, chip)
        self.values: dict[SSAValue, Vector] = {}

    def function(self, function: FuncOp) -> None:
        for i, argument in enumerate(function.body.block.args):
            name = f"i{self.chip.pointer_bits}" if types.is_pointer(argument.type) else type_name(argument.type)
            element = self.chip.parameter(self.code, i, name)
            self.values[argument] = Vector(name, 1, [Piece(elements=[element])])
        self.block(function.body.block)

    def block(self, block: Block) -> None:
        for op in block.ops:
            self.op(op)

    def op(self, op: Operation) -> None:
        if isinstance(op, ElementwiseOp | lane.ConstantOp | lane.ConstantsOp | lane.SplatOp | lane.PickOp | lane.JoinOp):
            n = (types.shape_of(op.results[0].type) or (1,))[0]
            self.values[op.results[0]] = Vector(type_name(op.results[0].type), n, [None] * -(-n // CHUNK), op)
            return
        self.code.place = place_of(op)
        if isinstance(op, lane.LoadOp):
            self.load(op)
        elif isinstance(op, lane.StoreOp):
            self.store(op)
        elif isinstance(op, ForOp):
            self.for_loop(op)
        elif isinstance(op, IfOp):
            self.if_op(op)
        elif isinstance(op, WhileOp):
            self.while_loop(op)
        elif isinstance(op, lane.BarrierOp):
            self.chip.barrier(self.code)
        elif isinstance(op, ReturnOp):
            self.chip.exit(self.code)
        else:
            self.define_id(op)

    def define_id(self, op: Operation) -> None:
        if isinstance(op, lane.ThreadIdOp):
            element = self.chip.thread_id(self.code)
        elif isinstance(op, lane.ProgramIdOp):
            element = self.chip.program_id(self.code, op.axis)
        elif isinstance(op, lane.NumProgramsOp):
            element = self.chip.num_programs(self.code, op.axis)
        else:
            raise InternalError(f"no selection for {op.name}")
        self.values[op.results[0]] = Vector("i32", 1, [Piece(elements=[element])])

    # -- values on demand

    def piece(self, value: SSAValue, chunk: int) -> Piece:
        """The registers of one chunk of a value, selecting what is missing behind it, in order, without recursion."""
        stack = [(value, chunk)]
        while stack:
            value_now, chunk_now = stack[-1]
            vector = self.values[value_now]
            if vector.pieces[chunk_now] is not None:
                stack.pop()
                continue
            missing = [(v, c) for v, c in self.needs(vector, chunk_now) if self.values[v].pieces[c] is None]
            if missing:
                stack += missing
                continue
            vector.pieces[chunk_now] = self.make(vector, chunk_now)
            stack.pop()
        piece = self.values[value].pieces[chunk]
        assert piece is not None
        return piece

    def needs(self, vector: Vector, chunk: int) -> list[tuple[SSAValue, int]]:
        """What must be there before a chunk of a vector can be made."""
        op = vector.op
        assert op is not None
        if isinstance(op, lane.SplatOp):
            return [(op.source, 0)]
        if isinstance(op, lane.PickOp):
            return [(op.operands[0], c) for c in {i // CHUNK for i in op.indices[chunk * CHUNK : (chunk + 1) * CHUNK]}]
        if isinstance(op, lane.JoinOp):
            return [(v, c) for v in op.operands for c in range(len(self.values[v].pieces))]
        return [(v, chunk) for v in op.operands]

    def make(self, vector: Vector, chunk: int) -> Piece:
        """Select one chunk of a pending vector, whose needs are met."""
        op = vector.op
        assert op is not None
        self.code.place = place_of(op)
        count = vector.count(chunk)
        if isinstance(op, ElementwiseOp):
            return self.elementwise(op, vector, chunk)
        if isinstance(op, lane.ConstantOp):
            value = op.value
            bits = float_bits(value, vector.type) if isinstance(value, float) else _wrap(value, vector.type)
            return Piece(elements=[Const(vector.type, bits)] * count)
        first = chunk * CHUNK
        if isinstance(op, lane.ConstantsOp):
            return Piece(elements=[Const(vector.type, _wrap(v, vector.type)) for v in op.values[first : first + count]])
        if isinstance(op, lane.SplatOp):
            source = self.elements(op.source, 0)[0]
            return Piece(elements=[source] * count)
        if isinstance(op, lane.PickOp):
            return Piece(elements=[self.elements(op.operands[0], i // CHUNK)[i % CHUNK] for i in op.indices[first : first + count]])
        joined = [e for v in op.operands for c in range(len(self.values[v].pieces)) for e in self.elements(v, c)]
        return Piece(elements=joined[first : first + count])

    def elements(self, value: SSAValue, chunk: int) -> Sequence[Element]:
        """A chunk as single elements.

        Taking apart is value-numbered and not kept in the piece: what a loop's body or a branch took apart is not there, or no
        longer the same, after it.
        """
        vector = self.values[value]
        piece = self.piece(value, chunk)
        if piece.elements is not None:
            return piece.elements
        assert piece.packed is not None
        bits, per = bits_of(vector.type), vector.per_register
        count = vector.count(chunk)
        return [e for k, r in enumerate(piece.packed) for e in self.chip.unpack(self.code, bits, r, min(per, count - k * per))]

    def packed(self, value: SSAValue, chunk: int) -> Sequence[Element]:
        """A chunk as registers of 32 bits (64 for wide elements)."""
        vector = self.values[value]
        piece = self.piece(value, chunk)
        if piece.packed is not None:
            return piece.packed
        assert piece.elements is not None
        bits, per = bits_of(vector.type), vector.per_register
        if per == 1:
            return piece.elements
        return [self.chip.pack(self.code, bits, piece.elements[k : k + per]) for k in range(0, len(piece.elements), per)]

    def elementwise(self, op: ElementwiseOp, vector: Vector, chunk: int) -> Piece:
        operands = list(op.operands)
        row, source = op.row, self.values[operands[op.row.typed_by]]
        name = row.name + ("_rtz" if op.rounding == "rtz" else "")
        if name == "ptr_to_int" or (name in ("bitcast", "int_to_ptr") and source.per_register == vector.per_register):
            return self.renamed(operands[0], vector, chunk)
        key = f"{name}.{source.type}.{vector.type}" if row.is_cast else f"{name}.{source.type}"
        count, code = vector.count(chunk), self.code
        packs = source.per_register > 1 and row.result == "same" and "bool" not in row.operands
        if packs and count % source.per_register == 0:
            rule = self.chip.rules.get(f"{key}x{source.per_register}")
            if rule is not None:
                columns = [self.packed(v, chunk) for v in operands]
                return Piece(packed=[code(f"{key}x{source.per_register}", *registers) for registers in zip(*columns, strict=True)])
        columns = [self.elements(v, chunk) for v in operands]
        if row.is_cast and vector.per_register == 2 and count % 2 == 0 and f"{key}x2" in self.chip.rules:
            return Piece(packed=[code(f"{key}x2", columns[0][i], columns[0][i + 1]) for i in range(0, count, 2)])
        return Piece(elements=[code(key, *elements) for elements in zip(*columns, strict=True)])

    def renamed(self, source: SSAValue, vector: Vector, chunk: int) -> Piece:
        """The same registers under another type of the same width."""
        piece = self.piece(source, chunk)

        def retype(elements: Sequence[Element] | None) -> list[Element] | None:
            return None if elements is None else [Const(vector.type, e.bits) if isinstance(e, Const) else e for e in elements]

        return Piece(retype(piece.elements), retype(piece.packed))

    def force(self, value: SSAValue) -> None:
        """Select all of a value here."""
        for chunk in range(len(self.values[value].pieces)):
            self.piece(value, chunk)

    # -- memory

    def load(self, op: lane.LoadOp) -> None:
        name, n = type_name(op.accessed), (types.shape_of(op.accessed) or (1,))[0]
        stored = "i8" if name == "i1" else name
        bits, width = bits_of(stored), op.width
        narrow = bits * width < 32
        other = op.part("other")
        registers: list[Element] = []
        for k in range(n // width):
            if narrow:
                for i in range(width):
                    fill = None if other is None else self._stored(other, name, k * width + i)
                    registers += self._load(op, k, form_of(stored), [fill], bits, i * bits // 8)
                continue
            form = "w64" if bits == 64 else "w32"
            count = bits * width // (64 if bits == 64 else 32)
            fills = [None if other is None else self._stored_register(other, name, k * count + i) for i in range(count)]
            registers += self._load(op, k, form, fills, max(bits, 32), 0)
        self.values[op.results[0]] = self._loaded(name, stored, n, registers, narrow)

    def _load(self, op: lane.LoadOp, k: int, form: str, fills: list[Element | None], bits: int, extra: int) -> list[Slice]:
        code = self.code
        registers = [code.new_register(form) for _ in fills]
        predicate = self._predicate(op, k)
        if predicate is not None:
            for register, fill in zip(registers, fills, strict=True):
                zero = Const({"e8": "i8", "e16": "i16", "w64": "i64"}.get(form, "i32"), 0)
                self.chip.move(code, register, zero if fill is None else fill)
        if not (isinstance(predicate, Const) and not predicate.bits):
            self.chip.load(code, self._access(op, k, tuple(registers), bits, extra, predicate))
        return registers

    def _loaded(self, name: str, stored: str, n: int, registers: list[Element], narrow: bool) -> Vector:
        vector = Vector(stored, n, [])
        per = 1 if narrow else vector.per_register
        for first in range(0, n, CHUNK):
            part = registers[first // per : max(first // per + 1, min(first + CHUNK, n) // per)]
            vector.pieces.append(Piece(elements=part) if per == 1 else Piece(packed=part))
        if name != "i1":
            return vector
        loaded = Vector("i1", n, [])
        for chunk, piece in enumerate(vector.pieces):
            assert piece is not None
            elements = piece.elements
            if elements is None:
                assert piece.packed is not None
                elements = [e for r in piece.packed for e in self.chip.unpack(self.code, 8, r, min(4, vector.count(chunk)))]
            loaded.pieces.append(Piece(elements=[self.code("nei.i8", e, Const("i8", 0)) for e in elements]))
        return loaded

    def _stored(self, value: SSAValue, name: str, index: int) -> Element:
        """One element in its memory form: an i1 is a byte of 0 or 1."""
        element = self.elements(value, index // CHUNK)[index % CHUNK]
        if name != "i1":
            return element
        if isinstance(element, Const):
            return Const("i8", element.bits & 1)
        return self.code("select.i8", element, Const("i8", 1), Const("i8", 0))

    def _stored_register(self, value: SSAValue, name: str, index: int) -> Element:
        """One 32-bit (64-bit) register of a value in its memory form."""
        vector = self.values[value]
        if name == "i1":
            return self.chip.pack(self.code, 8, [self._stored(value, name, index * 4 + i) for i in range(4)])
        first = index * vector.per_register
        return self.packed(value, first // CHUNK)[first % CHUNK // vector.per_register]

    def _predicate(self, op: lane.MemoryOp, k: int) -> Slice | Const | None:
        mask = op.part("mask")
        if mask is None:
            return None
        k = k if self.values[mask].n > 1 else 0
        element = self.elements(mask, k // CHUNK)[k % CHUNK]
        return None if isinstance(element, Const) and element.bits else element

    def _access(
        self, op: lane.MemoryOp, k: int, registers: tuple[Element, ...], bits: int, extra: int, predicate: Slice | Const | None
    ) -> Access:
        address = op.part("address")
        assert address is not None
        slot = op.slots[k]
        where = self.elements(address, slot // CHUNK)[slot % CHUNK]
        if isinstance(where, Const):
            register = self.code.new_register(form_of(where.type))
            self.chip.move(self.code, register, where)
            where = register
        assert not isinstance(predicate, Const)
        return Access(
            registers, bits, where, op.immediates[k] + extra, predicate, op.buffer, op.word("cache"), op.word("eviction"),
            "volatile" in op.properties,
        )

    def store(self, op: lane.StoreOp) -> None:
        value = op.part("value")
        assert value is not None
        name = type_name(value.type)
        bits, width = bits_of("i8" if name == "i1" else name), op.width
        for k in range(len(op.slots)):
            predicate = self._predicate(op, k)
            if isinstance(predicate, Const):
                continue
            if bits * width < 32:
                for i in range(width):
                    register = self._stored(value, name, k * width + i)
                    self.chip.store(self.code, self._access(op, k, (register,), bits, i * bits // 8, predicate))
                continue
            count = bits * width // (64 if bits == 64 else 32)
            registers = tuple(self._stored_register(value, name, k * count + i) for i in range(count))
            self.chip.store(self.code, self._access(op, k, registers, max(bits, 32), 0, predicate))

    # -- structured control flow

    def capture(self, op: Operation) -> None:
        """Select what the regions of `op` use from outside, so that it stands before them."""
        inside = set(op.walk())
        for inner in op.walk():
            for operand in inner.operands:
                if inner is not op and operand in self.values and operand.owner not in inside:
                    self.force(operand)

    def registers(self, value: SSAValue) -> list[Element]:
        """All registers of a value, in its carried form."""
        vector = self.values[value]
        get = self.packed if _carried_packed(vector.type, vector.n) else self.elements
        return [r for chunk in range(len(vector.pieces)) for r in get(value, chunk)]

    def carrier(self, value: SSAValue) -> list[Slice]:
        """Registers for a value that several places write; the value is defined as them."""
        name, n = type_name(value.type), (types.shape_of(value.type) or (1,))[0]
        vector = Vector(name, n, [])
        packed = _carried_packed(name, n)
        form = "w32" if packed else form_of(name)
        registers: list[Slice] = []
        for first in range(0, n, CHUNK):
            count = min(CHUNK, n - first)
            part = [self.code.new_register(form) for _ in range(count // vector.per_register if packed else count)]
            registers += part
            vector.pieces.append(Piece(packed=list(part)) if packed else Piece(elements=list(part)))
        self.values[value] = vector
        return registers

    def copy(self, to: Sequence[Slice], sources: Sequence[Element]) -> None:
        """All moves at once: a source that another move writes is saved first."""
        written = {register.reg for register in to}
        saved: list[Element] = []
        for register, source in zip(to, sources, strict=True):
            if isinstance(source, Slice) and source.reg in written and source != register:
                # The source may be a part of its register, as a half of a pair is on chips that have pairs.
                fresh = self.code.function.register(register.reg.cls, register.reg.width, register.reg.align).whole
                self.chip.move(self.code, fresh, source)
                source = fresh
            saved.append(source)
        for register, source in zip(to, saved, strict=True):
            if source != register:
                self.chip.move(self.code, register, source)

    def gather(self, values: Sequence[SSAValue]) -> list[Element]:
        return [r for v in values for r in self.registers(v)]

    def carriers(self, values: Sequence[SSAValue]) -> list[Slice]:
        return [r for v in values for r in self.carrier(v)]

    def region(self, block: Block) -> Operation:
        """Select a region's ops but for its terminator, which comes back."""
        self.code.scopes.append({})
        last = block.last_op
        assert last is not None
        for op in block.ops:
            if op is not last:
                self.op(op)
        return last

    def close(self) -> None:
        self.code.scopes.pop()

    def predicate(self, value: SSAValue) -> Slice:
        """A condition as a predicate register."""
        element = self.elements(value, 0)[0]
        if isinstance(element, Slice):
            return element
        register = self.code.new_register("i1")
        self.chip.move(self.code, register, element)
        return register

    def for_loop(self, op: ForOp) -> None:
        self.capture(op)
        code, body = self.code, op.body.block
        name = type_name(op.lb.type)
        upper, step = self.elements(op.ub, 0)[0], self.elements(op.step, 0)[0]
        starts = [*self.registers(op.lb), *self.gather(op.iter_args)]
        variables = self.carriers(list(body.args))
        self.copy(variables, starts)
        head, end = code.label("loop"), code.label("end")
        self._test(name, variables[0], upper, end, True)
        code.start(head)
        last = self.region(body)
        nexts = self.gather(last.operands)
        advanced = code(f"addi.{name}", variables[0], step)
        self.copy(variables, [advanced, *nexts])
        self.close()
        self._test(name, variables[0], upper, head, False)
        code.start(end)
        for result, argument in zip(op.results, body.args[1:], strict=True):
            self.values[result] = self.values[argument]

    def _test(self, name: str, index: Element, upper: Element, label: str, leave: bool) -> None:
        self.code.scopes.append({})
        inside = self.code(f"lts.{name}", index, upper)
        self.code.scopes.pop()
        self.chip.branch_if(self.code, inside, label, leave)

    def if_op(self, op: IfOp) -> None:
        self.capture(op)
        code = self.code
        predicate = self.predicate(op.cond)
        results = self.carriers(list(op.results))
        has_else = bool(op.false_region.blocks)
        other, end = code.label("else"), code.label("end")
        self.chip.branch_if(code, predicate, other if has_else else end, True)
        code.start(code.label("then"))
        for region, label in ((op.true_region, other), (op.false_region, end)):
            if not region.blocks:
                continue
            last = self.region(region.block)
            self.copy(results, self.gather(last.operands))
            self.close()
            if region is op.true_region and has_else:
                self.chip.branch(code, end)
                code.start(label)
        code.start(end)

    def while_loop(self, op: WhileOp) -> None:
        self.capture(op)
        code, before, after = self.code, op.before_region.block, op.after_region.block
        starts = self.gather(op.arguments)
        arguments = self.carriers(list(before.args))
        passed = self.carriers(list(after.args))
        self.copy(arguments, starts)
        head, end = code.label("while"), code.label("end")
        code.start(head)
        condition = self.region(before)
        predicate = self.predicate(condition.operands[0])
        self.copy(passed, self.gather(condition.operands[1:]))
        self.close()
        self.chip.branch_if(code, predicate, end, True)
        code.start(code.label("do"))
        last = self.region(after)
        self.copy(arguments, self.gather(last.operands))
        self.close()
        self.chip.branch(code, head)
        code.start(end)
        for result, argument in zip(op.results, after.args, strict=True):
            self.values[result] = self.values[argument]


def _carried_packed(name: str, n: int) -> bool:
    return name != "i1" and bits_of(name) < 32 and n % (32 // bits_of(name)) == 0


def _wrap(value: int | float, name: str) -> int:
    return int(value) & ((1 << bits_of(name)) - 1)
