"""The M1's side of the SIMT kit: the base set as one instruction each, registers, memory, branches. Core expands all other rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from tilefw.api.machine import Operand, Slice
from tilefw.api.simt import Access, Code, Const, Element, LaneChip, Rule
from tilefw_acme.isa import TABLE
from tilefw_acme.target import LANES

# Row of the elementwise table to instruction; the base set, no more.
_WORDS = {
    "addi.i32": "add", "subi.i32": "sub", "muli.i32": "mul", "mulhu.i32": "mulh", "andi.i32": "and", "ori.i32": "or",
    "xori.i32": "xor", "shl.i32": "shl", "shrs.i32": "sra", "shru.i32": "srl", "select.i32": "sel", "addf.f32": "fadd",
    "subf.f32": "fsub", "mulf.f32": "fmul", "fma.f32": "fma", "divf.f32": "fdiv", "s2f.i32.f32": "itof", "f2s.f32.i32": "ftoi",
}
_PREDICATES = {
    "eqi.i32": "eq", "lts.i32": "lts", "ltu.i32": "ltu", "eqf.f32": "feq", "ltf.f32": "flt", "lef.f32": "fle",
    "andi.i1": "pand", "ori.i1": "por", "xori.i1": "pxor",
}


def _rule(opcode: str, form: str) -> Rule:
    def rule(code: Code, *operands: Element) -> Element:
        return code.inst(opcode, form, *(code.chip.operand(code, o) for o in operands))  # type: ignore[attr-defined]

    return rule


def _extended(bits: int) -> Rule:
    """A small element's register has anything above it."""
    return lambda code, x: code("andi.i32", x, code.i32((1 << bits) - 1))


def _same(code: Code, x: Element) -> Element:
    return x


class M1(LaneChip):
    """Elements of up to 32 bits take a register, those of 64 bits an even pair."""

    name = "Acme M1"
    lanes = LANES
    pointer_bits = 64
    access_bytes = 4
    table = TABLE
    forms: ClassVar = {"i1": ("p", 1, 1), "e8": ("r", 1, 1), "e16": ("r", 1, 1), "w32": ("r", 1, 1), "w64": ("r", 2, 2)}
    rules: ClassVar = {
        **{row: _rule(opcode, "w32") for row, opcode in _WORDS.items()},
        **{row: _rule(opcode, "i1") for row, opcode in _PREDICATES.items()},
        # How small elements become words and back, which core cannot know: here they are the low bits of a register.
        **{f"extu.i{bits}.i32": _extended(bits) for bits in (8, 16)},
        **{f"trunci.i32.i{bits}": _same for bits in (8, 16)},
    }

    def operand(self, code: Code, element: Element) -> Operand:
        return self.literal(code, element) if isinstance(element, Const) else element

    def literal(self, code: Code, const: Const) -> Operand:
        if const.type == "i1":
            return code.inst("pmov", "i1", const.bits)
        if const.type in ("i64", "f64"):
            return code.inst("pair", "w64", const.bits & 0xFFFFFFFF, const.bits >> 32)
        return const.bits

    def move(self, code: Code, to: Slice, source: Element) -> None:
        wide = to.count == 2
        if isinstance(source, Const) and wide:
            code.effect("pair", [to], [source.bits & 0xFFFFFFFF, source.bits >> 32])
            return
        opcode = "pmov" if to.reg.cls == "p" else "mov2" if wide else "mov"
        code.effect(opcode, [to], [source.bits if isinstance(source, Const) else source])

    def unpack(self, code: Code, bits: int, packed: Element, count: int) -> Sequence[Element]:
        if isinstance(packed, Const):
            return [Const("i32", packed.bits >> (bits * i) & ((1 << bits) - 1)) for i in range(count)]
        if bits == 32:
            return [packed.part(i) for i in range(count)]
        return [packed if i == 0 else code.inst("srl", "w32", packed, bits * i) for i in range(count)]

    def pack(self, code: Code, bits: int, elements: Sequence[Element]) -> Element:
        words = [Const("i32", e.bits) if isinstance(e, Const) else e for e in elements]
        if bits == 32:
            return code.inst("pair", "w64", *(self.operand(code, word) for word in words))
        packed: Element = Const("i32", 0)
        for i, word in enumerate(words):
            field = code("andi.i32", word, code.i32((1 << bits) - 1))
            packed = code("ori.i32", packed, code("shl.i32", field, code.i32(bits * i))) if i else field
        return packed

    def parameter(self, code: Code, index: int, type: str) -> Element:
        listed = code.function.attributes["parameters"]
        place = listed[index]  # type: ignore[index]
        bits, offset = 8 * place["size"], place["offset"]
        value = code.inst(f"ldp{bits}", "w64" if bits == 64 else "w32", offset)
        return code("xori.i1", code.inst("eq", "i1", value, 0), Const("i1", 1)) if type == "i1" else value

    def thread_id(self, code: Code) -> Element:
        return code.inst("tid", "w32")

    def program_id(self, code: Code, axis: int) -> Element:
        return code.inst(f"group{'xyz'[axis]}", "w32")

    def num_programs(self, code: Code, axis: int) -> Element:
        return code.inst(f"groups{'xyz'[axis]}", "w32")

    def load(self, code: Code, access: Access) -> None:
        for register, bits, offset in _words(access):
            code.effect(
                f"ld{bits}", [register], [access.address, offset],  # type: ignore[list-item]
                predicate=access.predicate, buffer=access.buffer,
            )

    def store(self, code: Code, access: Access) -> None:
        for register, bits, offset in _words(access):
            value = register.bits if isinstance(register, Const) else register
            code.effect(
                f"st{bits}", (), [access.address, offset, value], predicate=access.predicate, buffer=access.buffer,
            )

    def barrier(self, code: Code) -> None:
        code.effect("bar")

    def branch(self, code: Code, label: str) -> None:
        code.effect("br", targets=(label,))

    def branch_if(self, code: Code, predicate: Slice, label: str, negated: bool) -> None:
        code.effect("br", targets=(label,), predicate=predicate, predicate_not=negated)

    def exit(self, code: Code) -> None:
        code.effect("end")


def _words(access: Access) -> list[tuple[Element, int, int]]:
    """The access as single ones of at most 32 bits: (register, bits, byte offset)."""
    found: list[tuple[Element, int, int]] = []
    for k, register in enumerate(access.registers):
        first = access.immediate + k * access.bits // 8
        if access.bits < 64:
            found.append((register, access.bits, first))
        elif isinstance(register, Const):
            found += [(Const("i32", register.bits >> (32 * i) & 0xFFFFFFFF), 32, first + 4 * i) for i in range(2)]
        else:
            found += [(register.part(i), 32, first + 4 * i) for i in range(2)]
    return found
