"""The SIMT kit's view of the ACME chips: which instruction serves which row, how values stand in registers, what a chip has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

from tilefw.api import TargetInfo, UnsupportedError
from tilefw.api.machine import Operand, Slice
from tilefw.api.sim import Fragment
from tilefw.api.simt import (
    AtomicAccess,
    ChipDescription,
    Code,
    Const,
    Element,
    LaneAccess,
    LaneChip,
    LinearLayout,
    MatrixAtom,
    Registers,
    Rule,
    alias,
    template,
)
from tilefw_acme.isa import ROWS, table
from tilefw_acme.matrix import MATRICES

_WORD = 0xFFFFFFFF

# The base set of core's expansions, one instruction each, by the form of its result.
_WORDS = {
    "addi.i32": "add", "subi.i32": "sub", "muli.i32": "mul", "mulhu.i32": "mulh.u", "andi.i32": "and", "ori.i32": "or",
    "xori.i32": "xor", "shl.i32": "shl", "shru.i32": "shr.u", "shrs.i32": "shr.s", "select.i32": "sel", "addf.f32": "fadd",
    "subf.f32": "fsub", "mulf.f32": "fmul", "fma.f32": "ffma", "divf.f32": "fdiv", "s2f.i32.f32": "cvt.f", "f2s.f32.i32": "cvt.s",
}
_CONDITIONS = {
    "eqi.i32": "cmp.eq", "lts.i32": "cmp.lt.s", "ltu.i32": "cmp.lt.u", "eqf.f32": "fcmp.eq", "ltf.f32": "fcmp.lt",
    "lef.f32": "fcmp.le", "andi.i1": "and.p", "ori.i1": "or.p", "xori.i1": "xor.p",
}


def _low_bits(bits: int) -> Rule:
    """What stands above a small element in its register is undefined, and cleared here."""
    return lambda code, x: code("andi.i32", x, code.i32((1 << bits) - 1))


def _layout(fragment: Fragment) -> LinearLayout:
    """The same places as bases: in a register, registers, lanes; an element's flat index is row-major."""
    names = (*fragment.columns, *fragment.rows)
    bases = {name: 1 << i for i, name in enumerate(names)}
    registers = sorted(name for name in names if name[0] != "l")  # e0, e1, r0, r1, ...
    lanes = sorted(name for name in names if name[0] == "l")
    return LinearLayout(fragment.shape, tuple(bases[n] for n in registers), tuple(bases[n] for n in lanes), ())


def _atoms() -> tuple[MatrixAtom, ...]:
    return tuple(
        MatrixAtom(
            name, row.a.shape[0], row.b.shape[1], row.a.shape[1], row.element, row.element, row.sums,
            _layout(row.a), _layout(row.b), _layout(row.d), row.cost,
        )
        for name, row in MATRICES.items()
    )


def _facts(access: LaneAccess) -> dict[str, Any]:
    """What passes must know of an access beside its operands."""
    return {"predicate": access.predicate, "buffer": access.buffer, "volatile": access.volatile}


class AcmeLanes(LaneChip):
    """Elements of up to 32 bits take a `v`, those of 64 bits an even pair of them; an i1 takes a `p`."""

    pointer_bits = 64
    access_bytes = 4
    atomics = frozenset({"cas.i32", "cas.i64"})  # core makes the others of these
    forms: ClassVar = {"i1": ("p", 1, 1), "e8": ("v", 1, 1), "e16": ("v", 1, 1), "w32": ("v", 1, 1), "w64": ("v", 2, 2)}
    rules: Mapping[str, Rule] = {
        **{key: template(opcode, "w32") for key, opcode in _WORDS.items()},
        **{key: template(opcode, "i1") for key, opcode in _CONDITIONS.items()},
        **{f"extu.i{bits}.i32": _low_bits(bits) for bits in (8, 16)},
        **{f"trunci.i32.i{bits}": alias for bits in (8, 16)},
    }

    def __init__(self, target: TargetInfo) -> None:
        self.name = f"the ACME {target.chip.upper()}"
        self.lanes = target.limits["lanes"]
        self.table = table(target)
        self._target = target

    @cached_property
    def description(self) -> ChipDescription:  # type: ignore[override]
        limits, rows = self._target.limits, ROWS[self._target.chip]
        return ChipDescription(
            self.name, self.lanes, self.pointer_bits, self.access_bytes, threads=limits["threads_per_workgroup"],
            shared_bytes=limits["shared_bytes"], shared_access_bytes=4, banks=limits["banks"], bank_bytes=4,
            shuffles="shuffle" in rows, atoms=tuple(atom for atom in _atoms() if atom.name in rows),
            registers=limits["registers_per_thread"],
        )

    def literal(self, code: Code, const: Const) -> Operand:
        if const.type in ("i64", "f64"):
            return code.inst("pair", "w64", const.bits & _WORD, const.bits >> 32)
        return const.bits

    def move(self, code: Code, to: Slice, source: Element) -> None:
        opcode = "mov.p" if to.reg.cls == "p" else "mov.d" if to.count == 2 else "mov.v"
        code.effect(opcode, [to], [self.operand(code, source)])

    def unpack(self, code: Code, bits: int, packed: Element, count: int) -> Sequence[Element]:
        if isinstance(packed, Const):
            return [Const("i32", packed.bits >> (bits * i) & ((1 << bits) - 1)) for i in range(count)]
        if bits == 32:
            return [packed.part(i) for i in range(count)]
        return [code("shru.i32", packed, code.i32(bits * i)) if i else packed for i in range(count)]

    def pack(self, code: Code, bits: int, elements: Sequence[Element]) -> Element:
        if bits == 32:
            return code.inst("pair", "w64", *(self.operand(code, e) for e in elements))
        words = [Const("i32", e.bits) if isinstance(e, Const) else e for e in elements]
        packed = code("andi.i32", words[0], code.i32((1 << bits) - 1))
        for i, word in enumerate(words[1:], 1):
            field = code("andi.i32", word, code.i32((1 << bits) - 1))
            packed = code("ori.i32", packed, code("shl.i32", field, code.i32(bits * i)))
        return packed

    def parameter(self, code: Code, index: int, type: str) -> Element:
        argument = code.function.attributes.parameters[index]
        offset, size = argument.offset, argument.size
        if size == 8:
            return self.pack(code, 32, [code.inst("param32", "w32", offset + part) for part in (0, 4)])
        word = code.inst(f"param{8 * size}", "w32", offset)
        return code("nei.i32", word, code.i32(0)) if type == "i1" else word

    def thread_id(self, code: Code) -> Element:
        return code.inst("thread", "w32")

    def program_id(self, code: Code, axis: int) -> Element:
        return code.inst(f"group.{'xyz'[axis]}", "w32")

    def num_programs(self, code: Code, axis: int) -> Element:
        return code.inst(f"groups.{'xyz'[axis]}", "w32")

    def load(self, code: Code, access: LaneAccess) -> None:
        for register, bits, offset in self._words(code, access):
            opcode = f"lds{bits}" if access.space == "shared" else f"ld{bits}"
            where = [access.address, offset]
            code.effect(opcode, [register], where, **_facts(access))  # type: ignore[list-item]

    def store(self, code: Code, access: LaneAccess) -> None:
        for register, bits, offset in self._words(code, access):
            opcode = f"sts{bits}" if access.space == "shared" else f"st{bits}"
            operands = [access.address, offset, self.operand(code, register)]
            code.effect(opcode, (), operands, **_facts(access))

    def _words(self, code: Code, access: LaneAccess) -> Iterator[tuple[Element, int, int]]:
        """The access as accesses of at most 32 bits: register, bits and byte offset of each."""
        size = access.bits // 8
        for i, register in enumerate(access.registers):
            parts = self.unpack(code, 32, register, 2) if access.bits == 64 else [register]
            for k, part in enumerate(parts):
                yield part, min(access.bits, 32), access.immediate + i * size + 4 * k

    def atomic(self, code: Code, access: AtomicAccess) -> None:
        form = "w64" if access.type == "i64" else "w32"
        operands = [access.address, access.immediate, *(self.operand(code, operand) for operand in access.operands)]
        result = access.result or code.new_register(form)
        if access.order in ("release", "acq_rel"):
            self.fence(code, "release", access.scope)
        code.effect(f"cas{access.type[1:]}", [result], operands, predicate=access.predicate, buffer=access.buffer)
        if access.order in ("acquire", "acq_rel"):
            self.fence(code, "acquire", access.scope)

    def fence(self, code: Code, order: str, scope: str) -> None:
        """A processor's waves share a cache that is not coherent: what is stored is written back, what is held is dropped."""
        reach = "system" if scope == "system" else "device"
        if order in ("release", "acq_rel"):
            code.effect(f"flush.{reach}", ())
        if order in ("acquire", "acq_rel"):
            code.effect(f"refresh.{reach}", ())

    def any_lane(self, code: Code, predicate: Element) -> Slice:
        return code.inst("any", "i1", self.operand(code, predicate))

    def barrier(self, code: Code) -> None:
        code.effect("barrier", (), [0])

    def shared_base(self, code: Code) -> Element:
        return code.i32(0)

    def uniform(self, code: Code, form: str, value: Element) -> Element:
        return value  # a `v` like any other; a jump asks that the lanes of a wave agree

    def shuffle(self, code: Code, mode: str, value: Element, lanes: Element) -> Element:
        if mode not in ("xor", "index"):
            raise UnsupportedError(f"{self.name} does not shuffle by '{mode}'", "TFW0610", code.place)
        source = lanes if mode == "index" else code("xori.i32", code.inst("lane", "w32"), lanes)
        return code.inst("shuffle", "w32", self.operand(code, value), self.operand(code, source))

    def atom(self, code: Code, atom: MatrixAtom, a: Registers, b: Registers, c: Registers, d: Sequence[Slice]) -> None:
        code.effect(atom.name, d, [self.operand(code, element) for element in (*a, *b, *c)])

    def branch(self, code: Code, label: str) -> None:
        code.effect("jump", targets=(label,))

    def branch_if(self, code: Code, predicate: Slice, label: str, negated: bool) -> None:
        code.effect("jump", targets=(label,), predicate=predicate, predicate_not=negated)

    def exit(self, code: Code) -> None:
        code.effect("end")
