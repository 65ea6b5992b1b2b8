"""One row on given elements by the chip's rules, run on the simulator with every check: a kernel of that row alone.

Each virtual register gets registers of its own, and long waits stand behind each instruction, so that nothing but the rules is
tried: neither allocation nor waits nor scheduling.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from assembled import text
from served import CHIP

from tilefw.api import ALL_CHECKS, BufferView, LaunchOptions
from tilefw.api.integers import ceil_div
from tilefw.api.machine import Function, Inst, Reg, Slice
from tilefw.api.simt import Code, Const, Element
from tilefw.simt.lane import registers
from tilefw_amd.backend import AmdBackend
from tilefw_amd.chips import Chip
from tilefw_amd.chips.targets import target
from tilefw_amd.isa.set import instruction_set
from tilefw_amd.isa.text import printer
from tilefw_amd.machine import machine_inst
from tilefw_amd.machine.expand import expand_pseudos
from tilefw_amd.machine.traits import SCALARS
from tilefw_amd.select.lanes import AmdLanes

WAVE = 64
_FILE = {"v": ("v", 512), "s": ("s", SCALARS), "m": ("s", SCALARS)}
# Registers of the frame around the row: v254, v255, s[96:97], s[98:99].
_PROLOGUE = """
  s_load_dwordx2 s[96:97], s[0:1], 0x0
  v_lshlrev_b32 v255, 2, v0
  v_lshl_add_u32 v255, s2, 8, v255
  s_waitcnt lgkmcnt(0)
"""
# For results of shuffles, and 16 wait states: no row is a matrix instruction, and nothing else asks for more.
_WAIT = "  s_waitcnt lgkmcnt(0)\n  s_nop 15"
# Elements of 8 and 16 bits are stored alone: nothing is said of the bits above.
_STORES = {8: "byte", 16: "short"}


@dataclass(frozen=True)
class Column:
    """Operands of one type: unsigned patterns, a lane each; or one pattern that is a constant of the program."""

    type: str
    patterns: np.ndarray
    constant: bool = False


def _bits(type_: str) -> int:
    return 32 if type_ == "packed" else registers.bits_of(type_)


def _form(type_: str) -> str:
    return "w32" if type_ == "packed" else registers.form_of(type_)


def started(chip: Chip = CHIP) -> Code:
    """An empty function for the chip."""
    return Code(Function("kernel", chip.target), AmdLanes(instruction_set(chip), True))


def selected(
    key: str, columns: Sequence[Column], uniform: bool = False, chip: Chip = CHIP
) -> tuple[Function, list[Element], Element]:
    """The machine code of row `key`, its operands and its result: what selection makes of it."""
    code = started(chip)
    operands: list[Element] = []
    for column in columns:
        if column.constant:
            operands.append(Const(column.type, int(column.patterns[0])))
        else:
            operands.append(code.new_register(code.chip.form(column.type, uniform) if uniform else _form(column.type)))
    return code.function, operands, code(key, *operands)


def run(key: str, result: str, columns: Sequence[Column], uniform: bool = False, chip: Chip = CHIP) -> np.ndarray:
    """The row's results as unsigned patterns; with `uniform` a wave computes one element, in scalar registers."""
    return run_selected(*selected(key, columns, uniform, chip), result, columns, uniform, chip)


def run_from_packed(key: str, result: str, packed: np.ndarray, bits: int, index: int, then: str = "") -> np.ndarray:
    """The row on element `index` of packed registers, taken apart as selection does it; and the row `then` on that, if any."""
    code = started()
    register = code.new_register("w32")
    elements = code.chip.unpack(code, bits, register, 32 // bits)
    code.parts.update(((e, bits), (register, i)) for i, e in enumerate(elements) if isinstance(e, Slice))
    found = code(key, elements[index])
    return run_selected(code.function, [register], code(then, found) if then else found, result, [Column("i32", packed)])


def run_on_pairs(key: str, columns: Sequence[Column], conditions: Sequence[Column] = ()) -> np.ndarray:
    """The rule for two elements of 32 bits on pairs of registers, given and returned as patterns of 64 bits, the first element low;
    a constant is one element, for both. `conditions`, one of each element, stand first."""
    code = started()
    masks: list[Element] = [code.new_register("i1") for _ in conditions]
    operands: list[Element] = [Const("f32", int(c.patterns[0])) if c.constant else code.new_register("w64") for c in columns]
    elements = [half for o in operands for half in ((o.part(0), o.part(1)) if isinstance(o, Slice) else (o, o))]
    found = code.chip.pack(code, 32, code(key, *masks, *elements))
    return run_selected(code.function, [*masks, *operands], found, "i64", [*conditions, *columns], False)


def run_selected(
    function: Function, operands: list[Element], found: Element, result: str, columns: Sequence[Column], uniform: bool = False,
    chip: Chip = CHIP,
) -> np.ndarray:
    """What the machine code of `function` makes of the operands: `found`, as unsigned patterns."""
    count = max(len(c.patterns) for c in columns if not c.constant)
    groups = count if uniform else ceil_div(count, WAVE)
    planes = [plane for c in columns if not c.constant for plane in _planes(c, groups, uniform)]
    body = _PROLOGUE + _body(chip, function, operands, found, columns, result, groups, uniform)
    backend = AmdBackend(target(chip))
    artifact = backend.parse(_roomy(text(body)).replace(CHIP.triple, chip.triple), "kernel.s")
    words = np.concatenate([*planes, np.zeros(2 * groups * WAVE, np.uint32)])
    device = backend.simulator()
    buffer = device.allocate(words.nbytes, label="buffer")
    device.write(buffer, words.tobytes())
    options = LaunchOptions(block=(WAVE, 1, 1), dynamic_shared=0, checks=ALL_CHECKS)
    report = device.launch(device.load(artifact), "kernel", (groups,), [BufferView(buffer)], options)
    assert report.findings == (), report.findings[:3]
    out = np.frombuffer(device.read(buffer, words.nbytes), np.uint32)[-2 * groups * WAVE :].reshape(2, -1)
    bits = _bits(result)
    both = (out[0].astype(np.uint64) | out[1].astype(np.uint64) << np.uint64(32)) & np.uint64((1 << bits) - 1)
    return both[::WAVE] if uniform else both[:count]


def _roomy(kernel: str) -> str:
    for old, new in (("next_free_vgpr 64", "next_free_vgpr 256"), ("next_free_sgpr 64", "next_free_sgpr 100"),
                     ("accum_offset 64", "accum_offset 256")):
        kernel = kernel.replace(old, new)
    mode = "".join(f"    .amdhsa_{line}\n" for line in ("ieee_mode 0", "float_denorm_mode_32 3"))
    return kernel.replace("_kernarg_segment_ptr 1\n", f"_kernarg_segment_ptr 1\n{mode}")


def _planes(column: Column, groups: int, uniform: bool) -> list[np.ndarray]:
    patterns = column.patterns.astype(np.uint64)
    padded = np.repeat(patterns, WAVE) if uniform else np.resize(patterns, groups * WAVE)
    # What stands above a small element is undefined: here it is rubbish.
    if _bits(column.type) in (8, 16):
        padded = padded | np.uint64(0xA5C35A96 >> _bits(column.type) << _bits(column.type))
    halves = [padded & np.uint64(0xFFFFFFFF), padded >> np.uint64(32)]
    return [half.astype(np.uint32) for half in halves[: 2 if _bits(column.type) == 64 else 1]]


def _body(
    chip: Chip, function: Function, operands: list[Element], found: Element, columns: Sequence[Column], result: str, groups: int,
    uniform: bool,
) -> str:
    placed = _Places(function, found)
    lines: list[str] = []
    plane = 0
    for operand, column in zip(operands, columns, strict=True):
        if not column.constant:
            assert isinstance(operand, Slice)
            plane += _load(lines, placed(operand), operand.reg.cls, plane, groups, _bits(column.type))
    copied = Function("kernel", chip.target)
    copied.files = function.files
    block = copied.block("entry")
    for inst in function.insts():
        block.insts += _placed(inst, placed)
        placed.passed(inst)
    expand_pseudos(copied)
    for inst in copied.insts():
        lines += [f"  {printer.text(machine_inst.instruction(instruction_set(chip), inst))}", _WAIT]
    _store(lines, placed(found) if isinstance(found, Slice) else found, found, plane, groups, _bits(result))
    return "\n".join(lines)


class _Places:
    """Physical registers for virtual ones of straight code, in pairs, taken back behind the last read. v0 is the thread's index."""

    def __init__(self, function: Function, found: Element) -> None:
        self.files = {cls: function.file(file, size) for cls, (file, size) in _FILE.items()}
        self.free = {"v": [*range(250, 1, -2)], "s": [*range(94, 3, -2)]}
        self.held: dict[Reg, Slice] = {}
        self.last = {piece.reg: inst for inst in function.insts() for piece in (*inst.defs, *inst.reads())}
        if isinstance(found, Slice):
            self.last[found.reg] = None

    def __call__(self, piece: Slice) -> Slice:
        reg = piece.reg
        if reg.physical:
            return piece
        if reg not in self.held:
            assert reg.width <= 2
            self.held[reg] = self.files[reg.cls].slice(self.free[_FILE[reg.cls][0]].pop(), reg.width)
        return self.held[reg].part(piece.first, piece.count)

    def passed(self, inst: Inst) -> None:
        for reg in {piece.reg for piece in (*inst.defs, *inst.reads())}:
            if self.last.get(reg) is inst and reg in self.held:
                self.free[_FILE[reg.cls][0]].append(self.held.pop(reg).first)


def _placed(inst: Inst, placed: _Places) -> list[Inst]:
    """The instruction with physical registers; what is tied to a result is copied there before."""

    def where(operand: Any) -> Any:
        return placed(operand) if isinstance(operand, Slice) else operand

    defs, uses = [where(d) for d in inst.defs], [where(u) for u in inst.uses]
    copies = [Inst("move.v", [defs[d]], [uses[u]]) for d, u in inst.tied]
    for d, u in inst.tied:
        uses[u] = defs[d]
    return [*copies, Inst(inst.opcode, defs, uses, tied=inst.tied, implicit_uses=[where(u) for u in inst.implicit_uses])]


def _load(lines: list[str], to: Slice, cls: str, plane: int, groups: int, bits: int) -> int:
    """Operands come from their planes; returns how many there were."""
    words = 2 if bits == 64 else 1
    for word in range(words):
        lines.append(f"  v_add_u32 v254, {4 * WAVE * groups * (plane + word):#x}, v255")
        target = f"v{to.first + word}" if cls == "v" else "v253"
        lines += [f"  global_load_dword {target}, v254, s[96:97]", "  s_waitcnt vmcnt(0)"]
        if bits == 1:
            lines += [f"  v_cmp_ne_u32 s[{to.first}:{to.first + 1}], 0, v253", _WAIT]
        elif cls == "s":
            lines += [f"  v_readfirstlane_b32 s{to.first + word}, v253", _WAIT]
    return words


def _store(lines: list[str], where: object, found: Element, plane: int, groups: int, bits: int) -> None:
    """The result goes to the two planes behind the operands."""
    for word in range(2 if bits == 64 else 1):
        if isinstance(found, Const):
            lines.append(f"  v_mov_b32 v253, {found.bits >> 32 * word & 0xFFFFFFFF:#x}")
        elif bits == 1:
            lines.append(f"  v_cndmask_b32 v253, 0, 1, s[{where.first}:{where.first + 1}]")  # type: ignore[attr-defined]
        else:
            file = "v" if found.reg.cls == "v" else "s"
            lines.append(f"  v_mov_b32 v253, {file}{where.first + word}")  # type: ignore[attr-defined]
        lines.append(f"  v_add_u32 v254, {4 * WAVE * groups * (plane + word):#x}, v255")
        lines += [_WAIT, f"  global_store_{_STORES.get(bits, 'dword')} v254, v253, s[96:97]"]
    lines.append("  s_endpgm")
