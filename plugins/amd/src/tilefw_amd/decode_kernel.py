"""A kernel of a code object as a program for the simulator: its bytes decoded from end to end, and bound one by one.

The kernel's own code comes first, from the place where execution begins; then what is before that place, and the functions
that it may call. Bytes that mean nothing stop the launch when they are executed, as does running past the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from tilefw.api.errors import Place
from tilefw.api.sim import Instruction, Program, ProgramParameter, Variable
from tilefw_amd.code_object import CodeObject, Kernel, line_table
from tilefw_amd.code_object.descriptor import PRELOAD_PROLOGUE_BYTES
from tilefw_amd.initial_state import initial
from tilefw_amd.isa import mode, registers
from tilefw_amd.isa.binding import IMAGE, Site, bind, stopping
from tilefw_amd.isa.decode import decode
from tilefw_amd.isa.inst import Inst, Target
from tilefw_amd.isa.printer import text
from tilefw_amd.legal import HAZARDS

WORD = 4
_WIDTHS = [32] * registers.SCC + [1, 1]
_NAMES = [registers.name(registers.register(n)) for n in range(registers.SCC)] + ["scc", "exec"]
_WAVE = frozenset(range(2 * registers.VECTORS, registers.SCC + 1))


@dataclass(frozen=True, slots=True)
class Word:
    """One decoded instruction at byte `offset` of the image, in `function`; `inst` None: `size` bytes mean nothing, or are not there."""

    offset: int
    size: int
    inst: Inst | None
    function: str
    start: int


@dataclass(frozen=True, slots=True)
class KernelProgram(Program):
    """A program with the kernel that it was decoded from, which says what a launch passes besides the arguments."""

    kernel: Kernel = field(kw_only=True)


class KernelCode:
    """The instructions of a kernel in the order of its program."""

    def __init__(self, code_object: CodeObject, kernel: Kernel) -> None:
        self.object, self.kernel = code_object, kernel
        self.lines = line_table.read(code_object.elf)

    @cached_property
    def words(self) -> tuple[Word, ...]:
        kernel = self.kernel
        prologue = PRELOAD_PROLOGUE_BYTES if kernel.descriptor.user_sgpr_kernarg_preload_length else 0
        entry = min(prologue, kernel.size)
        found = list(self._sweep(kernel.name, kernel.address, entry, kernel.size))
        found += self._sweep(kernel.name, kernel.address, 0, entry)
        if any(_leaves(word.inst) for word in found):
            for function in self.object.functions:
                found += self._sweep(function.name, function.address, 0, function.size)
        return tuple(found)

    def _sweep(self, function: str, address: int, begin: int, end: int) -> Iterator[Word]:
        """Instructions one behind the other, and behind them one for running past the end; 4 bytes further after what means nothing."""
        image = self.object.image
        at, stop = address + begin, address + end
        while at < stop:
            inst = decode(image, at, stop)
            size = WORD if inst is None else inst.size
            yield Word(at, size, inst, function, address)
            at += size
        if begin < end:
            yield Word(at, 0, None, function, address)

    @cached_property
    def at(self) -> dict[int, int]:
        """Instructions by byte offset."""
        return {word.offset: index for index, word in enumerate(self.words) if word.size}

    def target(self, word: Word) -> int | None:
        """The instruction that a branch goes to; None where there is none."""
        if word.inst is None:
            return None
        for operand in word.inst.operands:
            if isinstance(operand, Target):
                return self.at.get(word.offset + word.size + WORD * operand.offset)
        return None

    # --- the program ------------------------------------------------------------------------------------------------------

    def program(self) -> KernelProgram:
        """The kernel for the simulator kit."""
        kernel, modes = self.kernel, self._modes()
        instructions = [self._instruction(index, word, modes[index]) for index, word in enumerate(self.words)]
        return KernelProgram(
            name=kernel.name,
            instructions=instructions,
            registers=_WIDTHS,
            register_names=_NAMES,
            parameters=tuple(
                ProgramParameter(a.name, a.offset, a.size, a.size, a.pointer) for a in kernel.metadata.arguments if not a.hidden
            ),
            variables=tuple(self._variables()),
            required_workgroup=kernel.metadata.required_workgroup,
            max_workgroup=kernel.metadata.max_flat_workgroup_size or None,
            wave_registers=_WAVE,
            initial=initial(kernel.descriptor),
            arguments_in_memory=True,
            code=(IMAGE, self._landings()),
            hazards=HAZARDS,
            kernel=kernel,
        )

    def _variables(self) -> Iterator[Variable]:
        descriptor = self.kernel.descriptor
        pointers = tuple((fixup.offset, fixup.addend) for fixup in self.object.fixups)
        yield Variable(IMAGE, "global", len(self.object.image), 4096, self.object.image, pointers=pointers)
        if descriptor.group_segment_fixed_size:
            yield Variable("LDS", "shared", descriptor.group_segment_fixed_size, 16)
        if descriptor.private_segment_fixed_size:
            yield Variable("scratch", "local", descriptor.private_segment_fixed_size, 16)

    def _landings(self) -> dict[int, int]:
        """Where a computed jump may go: the starts of functions, and what stands behind a call (or any place that a program
        counter was taken at)."""
        if not any(_leaves(word.inst) for word in self.words):
            return {}
        return dict(self.at)

    def _modes(self) -> list[mode.Bits]:
        steps = [self._step(index, word) for index, word in enumerate(self.words)]
        landings = sorted(self._landings().values())
        return mode.modes(steps, 0, mode.first(self.kernel.descriptor), landings)

    def _step(self, index: int, word: Word) -> mode.Step:
        inst = word.inst
        if inst is None or inst.form.mnemonic.startswith("s_endpgm"):
            return mode.Step(inst, ())
        target = self.target(word)
        always = inst.form.mnemonic == "s_branch" or _leaves(inst)
        following = (() if always else (index + 1,)) + (() if target is None else (target,))
        return mode.Step(inst, following, _leaves(inst))

    def _instruction(self, index: int, word: Word, bits: mode.Bits) -> Instruction:
        code = self._place(word)
        if word.inst is None:
            return Instruction(index, _written(word, self.object.image), "?", "control", stopping(_why(word)), code=code, wave=True)
        site = Site(index, word.offset, self.target(word), code, self.lines.place(word.offset))
        return bind(word.inst, mode.mode(bits, code), site, text(word.inst))

    def _place(self, word: Word) -> Place:
        """Where it stands in the binary, as disassemblers say it."""
        return Place(f"{self.object.name}: {word.function}+0x{word.offset - word.start:x}", 0)


def _leaves(inst: Inst | None) -> bool:
    """Whether an instruction goes to an address that the code computes."""
    return inst is not None and inst.form.row.name in ("s_setpc_b64", "s_swappc_b64")


def _written(word: Word, image: bytes) -> str:
    if not word.size:
        return f"the end of {word.function}"
    return f".long 0x{int.from_bytes(image[word.offset : word.offset + WORD], 'little'):08x}"


def _why(word: Word) -> str:
    if not word.size:
        return f"execution runs past the end of {word.function}"
    return "these bytes are no instruction of the chip"
