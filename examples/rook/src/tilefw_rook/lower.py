"""The SIMT kit's view of the Rook R1: which instruction serves which row, which register file holds a value, how memory is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from tilefw.api.machine import Operand, Slice
from tilefw.api.simt import AtomicAccess, ChipDescription, Code, Const, Element, LaneAccess, LaneChip, Rule, alias
from tilefw_rook.isa import ROWS, SMALL, table
from tilefw_rook.target import R1

# The base set of core's expansions and what the chip has beside it, one instruction each, by the form of the result.
_RULES = {
    "w32": {
        "addi.i32": "add", "subi.i32": "sub", "muli.i32": "mul", "mulhu.i32": "mulhu", "andi.i32": "and", "ori.i32": "or",
        "xori.i32": "xor", "shl.i32": "sll", "shru.i32": "srl", "shrs.i32": "sra", "select.i32": "sel", "f2s.f32.i32": "fcvt.x",
    },
    "i1": {
        "eqi.i32": "seq", "nei.i32": "sne", "lts.i32": "slt", "ltu.i32": "sltu", "eqf.f32": "feq", "ltf.f32": "flt",
        "lef.f32": "fle", "andi.i1": "and", "ori.i1": "or", "xori.i1": "xor",
    },
    "f32": {
        "addf.f32": "fadd", "subf.f32": "fsub", "mulf.f32": "fmul", "fma.f32": "fmadd", "divf.f32": "fdiv", "s2f.i32.f32": "fcvt.f",
        "select.f32": "fsel",
    },
}


def _instruction(opcode: str, form: str) -> Rule:
    """One instruction, each operand in the file or the form that its row names."""
    kinds = ROWS[opcode].operands
    return lambda code, *operands: code.inst(opcode, form, *(_operand(code, o, k) for o, k in zip(operands, kinds, strict=True)))


def _operand(code: Code, element: Element, kind: str) -> Operand:
    """An element as an operand of a kind: small constants as they are, values from the other file moved."""
    if isinstance(element, Const):
        value = _signed(element.bits)
        if kind == "c" and value in SMALL:
            return value
        return code.inst("fli", "f32", value) if kind == "f" else code.inst("li", "w32", value)
    if kind == "f" and element.reg.cls == "x":
        return code.inst("fmv.f", "f32", element)
    if kind != "f" and element.reg.cls == "f":
        return code.inst("fmv.x", "w32", element)
    return element


def _low_bits(bits: int) -> Rule:
    """What a register holds above a small element is undefined, and cleared here."""
    return lambda code, x: code("andi.i32", x, code.i32((1 << bits) - 1))


class RookLanes(LaneChip):
    """An f32 takes an `f`; every other element of up to 32 bits, and an i1 as 0 or 1, takes an `x`, one of 64 bits two."""

    name = "the Rook R1"
    lanes = R1.limits["lanes"]
    pointer_bits = 32
    access_bytes = 4
    atomics = frozenset({
        *(f"{kind}.i32" for kind in ("cas", "load", "xchg", "add", "and", "or", "xor")), "add.f32",
        *(f"{kind}.i64" for kind in ("cas", "load", "xchg")),
    })
    forms: ClassVar = {
        "i1": ("x", 1, 1), "e8": ("x", 1, 1), "e16": ("x", 1, 1), "w32": ("x", 1, 1), "w64": ("x", 2, 1), "f32": ("f", 1, 1),
    }
    rules: Mapping[str, Rule] = {
        **{key: _instruction(opcode, form) for form, rows in _RULES.items() for key, opcode in rows.items()},
        **{f"extu.i{bits}.i32": _low_bits(bits) for bits in (8, 16)},
        **{f"trunci.i32.i{bits}": alias for bits in (8, 16)},
    }

    def __init__(self, waves: int) -> None:
        self.table = table()
        self._waves = waves

    @property
    def description(self) -> ChipDescription:
        limits = R1.limits
        return ChipDescription(
            self.name, self.lanes, self.pointer_bits, self.access_bytes, threads=limits["threads_per_workgroup"],
            shared_bytes=limits["shared_bytes"], shared_access_bytes=4, banks=limits["banks"], bank_bytes=4,
            registers=limits["integer_registers"],
        )

    def form(self, type: str, uniform: bool) -> str:
        return "f32" if type == "f32" else super().form(type, uniform)

    def literal(self, code: Code, const: Const) -> Operand:
        if const.type in ("i64", "f64"):
            return code.tuple([code.i32(const.bits), code.i32(const.bits >> 32)], "x")
        return _operand(code, const, "f" if const.type == "f32" else "x")

    def move(self, code: Code, to: Slice, source: Element) -> None:
        for i in range(to.count):
            if isinstance(source, Const):
                code.effect("fli" if to.reg.cls == "f" else "li", [to.part(i)], [_signed(source.bits >> 32 * i)])
            else:
                code.effect(_MOVES[to.reg.cls, source.reg.cls], [to.part(i)], [source.part(i)])

    def unpack(self, code: Code, bits: int, packed: Element, count: int) -> Sequence[Element]:
        if isinstance(packed, Const):
            return [Const("i32", packed.bits >> (bits * i) & ((1 << bits) - 1)) for i in range(count)]
        if bits == 32:
            return [packed.part(i) for i in range(count)]
        return [code("shru.i32", packed, code.i32(bits * i)) if i else packed for i in range(count)]

    def pack(self, code: Code, bits: int, elements: Sequence[Element]) -> Element:
        words = [Const("i32", e.bits) if isinstance(e, Const) else e for e in elements]
        if bits == 32:
            return code.tuple(words, "x")
        packed = code(f"extu.i{bits}.i32", words[0]) if len(words) > 1 else words[0]
        for i, word in enumerate(words[1:], 1):
            field = word if bits * (i + 1) == 32 else code(f"extu.i{bits}.i32", word)  # the shift drops what stands above it
            packed = code("ori.i32", packed, code("shl.i32", field, code.i32(bits * i)))
        return packed

    def parameter(self, code: Code, index: int, type: str) -> Element:
        argument = code.function.attributes.parameters[index]
        offset, size = argument.offset, argument.size
        if size == 8:
            return self.pack(code, 32, [code.inst("lw.a", "w32", offset + part) for part in (0, 4)])
        word = code.inst({1: "lb.a", 2: "lh.a", 4: "lw.a"}[size], "w32", offset)
        return code("nei.i32", word, code.i32(0)) if type == "i1" else word

    def thread_id(self, code: Code) -> Element:
        return code.inst("thread", "w32")

    def program_id(self, code: Code, axis: int) -> Element:
        return code.inst(f"group.{'xyz'[axis]}", "w32")

    def num_programs(self, code: Code, axis: int) -> Element:
        return code.inst(f"groups.{'xyz'[axis]}", "w32")

    def load(self, code: Code, access: LaneAccess) -> None:
        for register, bits, where in self._words(code, access):
            assert isinstance(register, Slice)
            opcode = f"{_LOADS[register.reg.cls, bits]}{_SPACES[access.space]}"
            code.effect(opcode, [register], where, **_facts(access))

    def store(self, code: Code, access: LaneAccess) -> None:
        for register, bits, where in self._words(code, access):
            value = self.operand(code, register)
            cls = value.reg.cls if isinstance(value, Slice) else "x"
            code.effect(f"{_STORES[cls, bits]}{_SPACES[access.space]}", (), [*where, value], **_facts(access))

    def _words(self, code: Code, access: LaneAccess) -> Iterator[tuple[Element, int, list[Operand]]]:
        """The access as accesses of at most 32 bits: register, bits, and base and offset of each."""
        size = access.bits // 8
        for i, register in enumerate(access.registers):
            parts = self.unpack(code, 32, register, 2) if access.bits == 64 else [register]
            for k, part in enumerate(parts):
                offset = access.immediate + i * size + 4 * k
                near = (offset + 2048) % 4096 - 2048  # the rest goes into the base, in steps of 4 KiB, which neighbours share
                yield part, min(access.bits, 32), [code("addi.i32", access.address, code.i32(offset - near)), near]

    def atomic(self, code: Code, access: AtomicAccess) -> None:
        """Load-reserved, the change, store-conditional, again for the lanes whose store came too late."""
        where = code("addi.i32", access.address, code.i32(access.immediate))
        suffix = "d" if access.type == "i64" else "w"
        found = access.result or code.new_register("w64" if suffix == "d" else "w32")
        if access.kind == "load":
            code.effect(f"lr.{suffix}", [found], [where], predicate=access.predicate, buffer=access.buffer)
            return
        pending, head = code.new_register("i1"), code.label("reserve")
        self.move(code, pending, Const("i1", 1) if access.predicate is None else access.predicate)
        code.start(head)
        code.scopes.append({})
        code.effect(f"lr.{suffix}", [found], [where], predicate=pending, buffer=access.buffer)
        trying, new = pending, access.operands[-1]
        if access.kind == "cas":
            trying = code("andi.i1", pending, code(f"eqi.{access.type}", found, access.operands[0]))
        elif access.kind in _CHANGES:
            row = "addf" if access.type == "f32" else _CHANGES[access.kind]
            new = code(f"{row}.{access.type}", found, new)
        value = self.operand(code, new) if suffix == "d" else _operand(code, new, "x")
        stored = code.new_register("i1")
        self.move(code, stored, Const("i1", 1))  # lanes that do not try are done
        code.effect(f"sc.{suffix}", [stored], [where, value], predicate=trying, buffer=access.buffer)
        self.move(code, pending, code("xori.i1", stored, Const("i1", 1)))
        self.branch_if(code, self.any_lane(code, pending), head, False)
        code.scopes.pop()
        code.start(code.label("done"))

    def fence(self, code: Code, order: str, scope: str) -> None:
        """Nothing to do: load-reserved and store-conditional keep the accesses around them in order."""

    def barrier(self, code: Code) -> None:
        code.effect("bar", (), [0, self._waves])

    def shared_base(self, code: Code) -> Element:
        return code.i32(0)

    def uniform(self, code: Code, form: str, value: Element) -> Element:
        return value  # an `x` like any other; a branch asks that the lanes of a wave agree

    def any_lane(self, code: Code, predicate: Element) -> Slice:
        return code.inst("any", "i1", _operand(code, predicate, "x"))

    def branch(self, code: Code, label: str) -> None:
        code.effect("j", targets=(label,))

    def branch_if(self, code: Code, predicate: Slice, label: str, negated: bool) -> None:
        code.effect("beqz" if negated else "bnez", (), [predicate], targets=(label,))

    def exit(self, code: Code) -> None:
        code.effect("end")


_CHANGES = {"add": "addi", "and": "andi", "or": "ori", "xor": "xori"}  # of an atomic, the row that makes what it stores
_MOVES = {("x", "x"): "mv", ("f", "f"): "fmv", ("x", "f"): "fmv.x", ("f", "x"): "fmv.f"}  # to, from
_LOADS = {("x", 8): "lb", ("x", 16): "lh", ("x", 32): "lw", ("f", 32): "flw"}
_STORES = {("x", 8): "sb", ("x", 16): "sh", ("x", 32): "sw", ("f", 32): "fsw"}
_SPACES = {"": "", "shared": ".s"}


def _signed(bits: int) -> int:
    """The low 32 bits as a number with its sign."""
    return (bits & 0xFFFFFFFF ^ 1 << 31) - (1 << 31)


def _facts(access: LaneAccess) -> dict[str, Any]:
    """What passes must know of an access beside its operands."""
    return {"predicate": access.predicate, "buffer": access.buffer, "volatile": access.volatile}
