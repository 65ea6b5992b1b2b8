"""A kernel of a code object as a program for the simulator: every instruction bound, the mode in force known at each.

Bytes that mean nothing stop the launch when they are executed, as does running past the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tilefw.api.errors import Place
from tilefw.api.sim import Instruction, Program, ProgramParameter, Variable
from tilefw_amd.code_object import CodeObject, ObjectKernel, line_table
from tilefw_amd.isa import registers
from tilefw_amd.isa.meaning import mode
from tilefw_amd.isa.meaning import operand_roles as roles
from tilefw_amd.isa.meaning.binding import IMAGE, Site, bind, stopping
from tilefw_amd.isa.model import MCInst
from tilefw_amd.isa.set import InstructionSet
from tilefw_amd.isa.text.printer import text
from tilefw_amd.machine.hazards import hazards
from tilefw_amd.simulate.initial_state import initial
from tilefw_amd.simulate.kernel import WORD, Word, branch_pairs, by_offset, words
from tilefw_amd.simulate.speculative_loads import with_speculative_loads

IMAGE_ALIGNMENT = 4096  # AMDGPUUsage, "ELF Code Object": segments are aligned to pages
_SEGMENT_ALIGNMENT = 16
_WIDTHS = [32] * registers.SCC + [1, 1]
_NAMES = [*(registers.name(registers.register(n)) for n in range(registers.SCC)), "scc", "exec", *roles.NAMES_BEHIND]
_WAVE = frozenset(range(2 * registers.VECTORS, registers.SCC + 1))


@dataclass(frozen=True, slots=True)
class KernelProgram(Program):
    """A program with the kernel that it was decoded from, which says what a launch passes besides the arguments."""

    kernel: ObjectKernel = field(kw_only=True)


def program(isa: InstructionSet, code_object: CodeObject, kernel: ObjectKernel) -> KernelProgram:
    """The kernel for the simulator kit."""
    decoding = _Decoding(isa, code_object, kernel)
    return KernelProgram(
        name=kernel.name,
        instructions=decoding.instructions(),
        registers=_WIDTHS,
        register_names=_NAMES,
        parameters=tuple(
            ProgramParameter(a.name, a.offset, a.size, a.size, a.pointer) for a in kernel.metadata.arguments if not a.hidden
        ),
        variables=tuple(_variables(code_object, kernel)),
        required_workgroup=kernel.metadata.required_workgroup,
        max_workgroup=kernel.metadata.max_flat_workgroup_size or None,
        wave_registers=_WAVE,
        initial=initial(kernel.descriptor),
        arguments_in_memory=True,
        code=(IMAGE, decoding.at),
        hazards=hazards(isa.chip, branch_pairs(decoding.words)),
        kernel=kernel,
    )


def _variables(code_object: CodeObject, kernel: ObjectKernel) -> Iterator[Variable]:
    descriptor = kernel.descriptor
    pointers = tuple((fixup.offset, fixup.addend) for fixup in code_object.fixups)
    yield Variable(
        IMAGE, "global", len(code_object.image), IMAGE_ALIGNMENT, code_object.image, pointers=pointers,
        readonly=not code_object.has_variables,
    )
    if descriptor.group_segment_fixed_size:
        yield Variable("LDS", "shared", descriptor.group_segment_fixed_size, _SEGMENT_ALIGNMENT)
    if descriptor.private_segment_fixed_size:
        yield Variable("scratch", "local", descriptor.private_segment_fixed_size, _SEGMENT_ALIGNMENT)


class _Decoding:
    """The instructions of one kernel while they are bound. `at` are their numbers by byte offset."""

    def __init__(self, isa: InstructionSet, code_object: CodeObject, kernel: ObjectKernel) -> None:
        self.object, self.kernel = code_object, kernel
        self.lines = line_table.read(code_object.elf)
        self.words = words(isa, code_object, kernel)
        self.at = by_offset(self.words)

    def instructions(self) -> list[Instruction]:
        bound = zip(self.words, with_speculative_loads(self.words), self._modes(), strict=True)
        return [self._instruction(i, word, inst, bits) for i, (word, inst, bits) in enumerate(bound)]

    def _modes(self) -> list[mode.Bits]:
        """The mode at each instruction; computed jumps go to functions and behind calls, as every compiler's do."""
        steps = [self._step(index, word) for index, word in enumerate(self.words)]
        starts = {function.address for function in self.object.functions}
        behind = {word.offset + word.size for word in self.words if word.calls}
        landings = sorted(self.at[offset] for offset in starts | behind if offset in self.at)
        return mode.modes(steps, mode.first(self.kernel.descriptor), landings)

    def _step(self, index: int, word: Word) -> mode.FlowStep:
        target = self._target(word)
        following = () if not word.falls_through or index + 1 == len(self.words) else (index + 1,)
        return mode.FlowStep(word.inst, following + (() if target is None else (target,)), word.jumps)

    def _target(self, word: Word) -> int | None:
        return None if word.target is None else self.at.get(word.target)

    def _instruction(self, index: int, word: Word, inst: MCInst | None, bits: mode.Bits) -> Instruction:
        """`inst` is the word's, as it acts."""
        code = Place(f"{self.object.name}: {word.function}+0x{word.offset - word.start:x}", 0)
        if word.inst is None or inst is None:
            return Instruction(index, self._bytes(word), "", "control", stopping(word.why), code=code, wave=True)
        site = Site(index, word.offset, self._target(word), code, self.lines.place(word.offset))
        return bind(inst, mode.mode(bits, code), site, text(word.inst))

    def _bytes(self, word: Word) -> str:
        if not word.size:
            return f"the end of {word.function}"
        return f".long 0x{int.from_bytes(self.object.image[word.offset : word.offset + WORD], 'little'):08x}"
