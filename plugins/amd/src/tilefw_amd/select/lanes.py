"""The chip's side of the SIMT kit: registers, literals, packing, arguments and ids, memory, barriers, branches.

What is equal in all lanes stands in scalar registers (class `s`), a bit for each lane in a pair of them (class `m`), what differs
in vector registers (class `v`). A uniform i1 is 0 or -1 in 64 bits, so that it is a lane mask as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import ClassVar

from tilefw.api.machine import Operand, Slice
from tilefw.api.simt import (
    AsyncCopy,
    AtomicAccess,
    ChipDescription,
    Code,
    Const,
    Element,
    FragmentAccess,
    InlineAssembly,
    LaneAccess,
    LaneChip,
    MatrixAtom,
    Registers,
    Rule,
    Scale,
)
from tilefw_amd import abi
from tilefw_amd.chips import WAVE, Chip, occupancy
from tilefw_amd.isa.set import InstructionSet, instruction_set
from tilefw_amd.machine.traits import SCALARS, instructions
from tilefw_amd.select import access as accesses
from tilefw_amd.select import atomics, copies, inline_assembly, operands, packing, program_order, shuffles
from tilefw_amd.select.combine import combiner
from tilefw_amd.select.matrix import multiply, of_rows
from tilefw_amd.select.rules import integers, rules, uniform_rules
from tilefw_amd.select.rules.preference import first_served


@cache
def description(chip: Chip, rows: int = 0) -> ChipDescription:
    """The plain facts of a chip, with the matrix instructions of so many `rows` alone where it is not 0.

    Shared memory: CDNA3 ISA, section "Local Data Share" (DS_READ_B128). Vector units have 16 lanes: a wave's instruction takes
    them for four cycles. Stores go through the L1 to the L2, which writes back (LLVM, AMDGPUUsage, "Memory Model gfx942"): what
    several instructions store of a line meets there. Buffer accesses check each dword (section "Range checking"). Wide accesses
    are as fast at any dword (LLVM, SIISelLowering.cpp, `allowsMisalignedMemoryAccessesImpl`). A barrier does not wait for waves
    that have ended (section "Program Control", S_BARRIER).
    """
    limits, isa = chip.limits, instruction_set(chip)
    copied = copies.copy_bytes(isa)
    return ChipDescription(
        name=chip.name, lanes=WAVE, pointer_bits=chip.pointer_bits, access_bytes=accesses.global_bytes(isa), alignment=4,
        threads=limits["threads_per_workgroup"], shared_bytes=limits["shared_bytes"],
        shared_access_bytes=accesses.shared_bytes(isa), banks=limits["shared_banks"], bank_bytes=chip.bank_bytes,
        **shuffles.described(isa), atoms=of_rows(isa, rows), copy_bytes=copied, copies_consecutive=bool(copied),
        transposed_loads=copies.transposed_loads(isa),
        registers=limits["registers_per_thread"] // 2, processor_registers=limits["registers_per_processor"],
        processor_threads=limits["waves_per_simd"] * limits["simds_per_processor"] * WAVE, issue_cycles=chip.rates.vector_cycles,
        store_bytes=16, offsets=True, bounded=True, bound_bytes=4,
        grid=chip.max_grid, grid_threads=abi.GRID_THREADS, waves_leave=True,
    )


_VECTORS = {"i1": ("m", 2, 2), "e8": ("v", 1, 1), "e16": ("v", 1, 1), "w32": ("v", 1, 1), "w64": ("v", 2, 2)}
_UNIFORM = {"ui1": ("s", 2, 2), "ue8": ("s", 1, 1), "ue16": ("s", 1, 1), "uw32": ("s", 1, 1), "uw64": ("s", 2, 2)}
_INTEGERS = {"i1": "ui1", "i4": "ue8", "i8": "ue8", "i16": "ue16", "i32": "uw32", "i64": "uw64"}


class AmdLanes(LaneChip):
    """`fusion` lets products and sums of floats be contracted; `disjoint`: buffers of different arguments do not overlap.

    `chunk`: so many programs with consecutive ids run on one die, 0 for one (see `program_order`). `rows`: those of the matrix
    instructions to choose among, 0 for all.
    """

    forms: ClassVar = _VECTORS | _UNIFORM
    uniform_classes = frozenset({"s"})
    consecutive = True
    atomics = atomics.ATOMICS

    def __init__(self, isa: InstructionSet, fusion: bool, disjoint: bool = False, chunk: int = 0, rows: int = 0) -> None:
        self.isa = isa
        self.disjoint = disjoint
        self.chunk = chunk
        self._description = description(isa.chip, rows)
        self.name, self.lanes = self._description.name, self._description.lanes
        self.pointer_bits, self.access_bytes = self._description.pointer_bits, self._description.access_bytes
        self.steps = occupancy.steps(isa.chip)
        self.table = instructions(isa)
        self.rules = rules(isa.chip)
        self.uniform_rules = uniform_rules(isa.chip)
        self.combiner = combiner(isa, fusion)

    @property
    def description(self) -> ChipDescription:
        return self._description

    def rule(self, key: str) -> Rule | None:
        """The row's rule, or core's expansion; both where the chip was made without instructions of its generation."""
        own = self.rules.get(key)
        return super().rule(key) if own is None or not self.isa.chip.removed else first_served(own, self.expansion(key))

    # -- operands of rules

    vector = staticmethod(operands.vector)
    vectors = staticmethod(operands.vectors)
    scalar = staticmethod(operands.scalar)

    def form(self, type: str, uniform: bool) -> str:
        return _INTEGERS[type] if uniform and type in _INTEGERS else super().form(type, uniform)

    def alignment(self, cls: str, width: int) -> int:
        """CDNA3 ISA, "SGPR Alignment" and, of vector registers, LLVM's AMDGPUUsage: tuples begin at even registers."""
        return 4 if cls == "s" and width > 2 else min(width, 2)

    def literal(self, code: Code, const: Const) -> Operand:
        width = 64 if const.type in ("i1", "i64", "f64") else 32  # as registers hold it
        value = operands.constant_bits(const) & (1 << width) - 1
        return value if operands.is_inline(value, width) else operands.vector_constant(code, value, width)

    def move(self, code: Code, to: Slice, source: Element) -> None:
        if isinstance(source, Const):
            _set(code, to, operands.constant_bits(source))
        elif to.reg.cls in ("s", "m") and source.reg.cls in ("v", "a"):
            for i in range(to.count):
                code.effect("v_readfirstlane_b32", [to.part(i)], [source.part(i)])
        else:
            code.effect(f"move.{to.reg.cls}", [to], [source])

    def unpack(self, code: Code, bits: int, packed: Element, count: int) -> Sequence[Element]:
        return packing.unpack(code, bits, packed, count)

    def pack(self, code: Code, bits: int, elements: Sequence[Element]) -> Element:
        return packing.pack(code, bits, elements)

    def wide_product(self, code: Code, x: Element, y: Element) -> Element | None:
        has = self.table.has("v_mad_i64_i32") or code.uniform(x, y)
        return integers.signed_product(code, x, y) if has else None

    # -- what the launch leaves in registers and in the block of arguments

    def prologue(self, code: Code) -> None:
        self._arguments(code)
        self.thread_id(code)
        for axis in range(len(abi.WORKGROUP_IDS)):
            self._workgroup_id(code, axis)

    def _arguments(self, code: Code) -> Slice:
        return code.inst("move.s", "uw64", _scalar_file(code, abi.KERNEL_ARGUMENTS, 2))

    def thread_id(self, code: Code) -> Element:
        file = code.function.file("v", self.table.classes["v"].count or 0)
        return code.inst("move.v", "w32", file.slice(abi.WORK_ITEM, 1))

    def _workgroup_id(self, code: Code, axis: int) -> Element:
        return code.inst("move.s", "uw32", _scalar_file(code, abi.WORKGROUP_IDS[axis], 1))

    def program_id(self, code: Code, axis: int) -> Element:
        if not self.chunk:
            return self._workgroup_id(code, axis)
        axes = range(len(abi.WORKGROUP_IDS))
        ids, counts = [self._workgroup_id(code, a) for a in axes], [self.num_programs(code, a) for a in axes]
        return program_order.program_id(code, ids, counts, axis, self.chunk, self.isa.chip.limits["dies"])

    def num_programs(self, code: Code, axis: int) -> Element:
        listed = code.function.attributes.parameters
        return code.inst("s_load_dword", "uw32", self._arguments(code), abi.workgroup_count_offset(listed, axis))

    def parameter(self, code: Code, index: int, type: str) -> Element:
        return accesses.parameter(code, self._arguments(code), index, type)

    # -- memory

    def load(self, code: Code, access: LaneAccess) -> None:
        accesses.load(code, access)

    def store(self, code: Code, access: LaneAccess) -> None:
        accesses.store(code, access)

    def atomic(self, code: Code, access: AtomicAccess) -> None:
        atomics.atomic(code, access)

    def fence(self, code: Code, order: str, scope: str) -> None:
        atomics.fence(code, order, scope)

    def any_lane(self, code: Code, predicate: Element) -> Slice:
        """A mask of lanes, of which a branch asks whether it is zero."""
        assert isinstance(predicate, Slice)
        return predicate

    def shared_base(self, code: Code) -> Element:
        return code.i32(0)

    def barrier(self, code: Code) -> None:
        code.effect("s_barrier")

    def trap(self, code: Code) -> None:
        # 2 is an assertion that failed (LLVM AMDGPUUsage, "Trap Handler ABI").
        code.effect("s_trap", (), [2])

    def observe(self, code: Code, what: str) -> Element:
        if what == "processor":
            # Bits 8 to 15 of HW_ID: the compute unit, its array and its shader engine (CDNA3 ISA, section "Hardware registers").
            return code.inst("s_getreg_b32", "uw32", "hwreg(HW_REG_HW_ID, 8, 8)")
        ticks = code.new_register("uw64")
        code.effect("s_memrealtime", [ticks])
        # The clock runs at 100 MHz (LLVM, AMDGPUUsage, "llvm.amdgcn.s.memrealtime"; HIP, wall_clock64).
        return code("muli.i64", ticks, Const("i64", 10)) if what == "nanoseconds" else ticks

    def inline_assembly(self, code: Code, assembly: InlineAssembly) -> Sequence[Element]:
        return inline_assembly.run(self, self.isa, code, assembly)

    def copy_async(self, code: Code, copy: AsyncCopy) -> None:
        copies.copy_async(code, copy)

    def commit(self, code: Code) -> None:
        copies.commit(code)

    def wait(self, code: Code, pending: int) -> None:
        copies.wait(code, pending)

    def fragment_load(self, code: Code, access: FragmentAccess) -> None:
        accesses.load_transposed(code, access)

    # -- lanes

    def shuffle(self, code: Code, mode: str, value: Element, lanes: Element) -> Element:
        return shuffles.shuffle(code, mode, value, lanes)

    def uniform(self, code: Code, form: str, value: Element) -> Element:
        return packing.in_scalars(code, value)

    def atom(self, code: Code, atom: MatrixAtom, a: Registers, b: Registers, c: Registers, d: Sequence[Slice]) -> None:
        multiply(code, atom, a, b, c, d)

    def scaled_atom(
        self, code: Code, atom: MatrixAtom, a: Registers, b: Registers, c: Registers, d: Sequence[Slice], a_scale: Scale,
        b_scale: Scale,
    ) -> None:
        multiply(code, atom, a, b, c, d, (a_scale, b_scale))

    # -- control flow

    def branch(self, code: Code, label: str) -> None:
        code.effect("s_branch", targets=(label,))

    def branch_if(self, code: Code, predicate: Slice, label: str, negated: bool) -> None:
        code.effect("branch_not.mask" if negated else "branch.mask", (), [predicate], targets=(label,))

    def exit(self, code: Code) -> None:
        code.effect("s_endpgm")


def _set(code: Code, to: Slice, bits: int) -> None:
    """A constant into a register that others write too."""
    file = "s" if to.reg.cls in ("s", "m") else "v"
    code.effect(f"{file}_mov_b{32 * to.count}", [to], [bits & (1 << 32 * to.count) - 1])


def _scalar_file(code: Code, first: int, count: int) -> Slice:
    return code.function.file("s", SCALARS).slice(first, count)
