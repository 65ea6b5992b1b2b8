"""PTX's side of the SIMT kit: registers, literals, packing, special registers, memory, atomics, shuffles, copies, branches."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import ClassVar

from tilefw.api.machine import EFFECT, JUMP, MOVE, PURE, InstructionTable, InstructionTraits, Operand, RegisterClass, Slice
from tilefw.api.simt import (
    AsyncCopy,
    AtomicAccess,
    BulkCopy,
    BulkStore,
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
    RoleRegisters,
    SharedSource,
)
from tilefw_nvidia.chips import Chip
from tilefw_nvidia.isa.set import instruction_set
from tilefw_nvidia.select import atomics, copy_engine, inline_assembly, mbarrier, warpgroup
from tilefw_nvidia.select.combine import combiner
from tilefw_nvidia.select.matrix import FRAGMENT_LOADS, FRAGMENT_STORES, atoms, load_fragment, multiply, store_fragment
from tilefw_nvidia.select.rules import rules
from tilefw_nvidia.select.warpgroup import warpgroup_atoms

_EFFECTS = {
    inline_assembly.OPCODE, "st", "bar", "barrier", "mbarrier", "setmaxnreg", "trap", "atom", "red", "membar", "fence", "cp",
    "wgmma", "stmatrix", "multimem", "tensormap",
}
_LOADS = {"ld", "ldmatrix"}
# PTX ISA, `.sync`: all threads of the mask, or of the warp, execute the same one.
_CONVERGENT = {"shfl", "vote", "match", "redux", "elect", "mma", "movmatrix"}
_MOVES = {"mov.pred", "mov.b16", "mov.b32", "mov.b64"}


@cache
def traits(opcode: str) -> InstructionTraits:
    """What passes must know of an opcode. Loads are removable: nobody sees one whose result is unused."""
    base = opcode.partition(".")[0]
    if base in ("ret", "bra"):
        return JUMP
    if base in _EFFECTS:
        return EFFECT
    if base in _LOADS and not opcode.startswith("ld.param"):
        return InstructionTraits(memory="shared" if ".shared" in opcode else "global")
    if base in _CONVERGENT:
        return InstructionTraits(convergent=True)
    return MOVE if opcode in _MOVES else PURE


_CLASSES = (RegisterClass("p", 1), RegisterClass("rs", 16), RegisterClass("r", 32), RegisterClass("rd", 64))
TABLE = InstructionTable("ptx", traits, {c.name: c for c in _CLASSES})


@cache
def description(chip: Chip) -> ChipDescription:
    """The facts of a chip that layouts and lowering read. A chip without ldmatrix, cp.async or shfl has none of them
    here."""
    instructions = instruction_set(chip)
    loads = tuple(load for load in FRAGMENT_LOADS if instructions.opcode(f"{load.name}.sync.aligned.m8n8.x4.shared.b16").exists)
    stores = tuple(each for each in FRAGMENT_STORES if instructions.opcode(f"{each.name}.sync.aligned.m8n8.x4.shared.b16").exists)
    copies = chip.copy_bytes if instructions.opcode("cp.async.ca.shared.global").exists else ()
    shuffles = all(instructions.opcode(f"shfl.sync.{mode}.b32").exists for mode in _SHUFFLES.values())
    engine = copy_engine.copy_engine(chip)
    return ChipDescription(
        name="PTX", lanes=chip.lanes, pointer_bits=chip.pointer_bits, access_bytes=_widest(chip, "global"),
        threads=chip.threads_per_workgroup, shared_bytes=chip.shared_bytes, shared_access_bytes=_widest(chip, "shared"),
        banks=chip.banks, bank_bytes=chip.bank_bytes, shuffles=shuffles,
        scan_shuffles=("up", "down") if shuffles else (), copy_bytes=copies,
        atoms=(*atoms(chip), *warpgroup_atoms(chip)), shared_views=bool(chip.warpgroup_rates), fragment_loads=loads,
        fragment_stores=stores,
        copy_engine=engine,
        registers=chip.registers_per_thread, processor_registers=chip.registers_per_processor,
        processor_shared_bytes=chip.shared_bytes_per_processor, system_shared_bytes=chip.system_shared_bytes,
        clusters=chip.workgroups_per_cluster, role_waves=_ROLE_WARPS, role_registers=_ROLE_REGISTERS,
        register_deal=_REGISTER_DEAL if instructions.opcode("setmaxnreg.inc.sync.aligned.u32").exists else 0,
        barrier_bytes=mbarrier.BYTES if instructions.opcode("mbarrier.try_wait.parity.shared.b64").exists else 0,
    )


def _widest(chip: Chip, space: str) -> int:
    """How many bytes an access of a space has at most: as far as the chip has every load and store of so many words."""
    instructions, words = instruction_set(chip), chip.access_bytes // 4
    opcodes = {count: [f"{verb}.{space}.v{count}.b32" for verb in ("ld", "st")] for count in (2, 4) if count <= words}
    served = itertools.takewhile(lambda count: all(instructions.opcode(each).exists for each in opcodes[count]), opcodes)
    return 4 * max(served, default=1)


_SPACES = {"": "global", "cluster": "shared::cluster"}

# The name by which emit declares the workgroup's shared memory.
SHARED = "tilefw_shared"

_SHUFFLES = {"xor": "bfly", "index": "idx", "up": "up", "down": "down"}
_ROLE_WARPS = 4  # PTX ISA, setmaxnreg: all warps of a warpgroup execute the same one
_REGISTER_DEAL = 8  # PTX ISA, setmaxnreg: a multiple of 8
# As ptxas 12.9 takes them: addresses of 128x64 elements of f16 took 38 on 8 warps, those of a copy engine are uniform; a
# product of 64x256 of a warpgroup, 128 sums a thread, takes 154 registers at least.
_ROLE_REGISTERS = RoleRegisters(copying=56, starting=40, beside_sums=26)
_ALL_LANES = -1  # the membermask of a whole warp


class PtxChip(LaneChip):
    """One chip; `fusion` lets ptxas contract multiply and add. `deals`: warps may hand registers to others, as the launch does not
    say how many a thread has: a thread that asks for more than all have together would wait forever."""

    table = TABLE
    byte_pairs = early_ends = True
    forms: ClassVar = {"i1": ("p", 1, 1), "e8": ("r", 1, 1), "e16": ("rs", 1, 1), "w32": ("r", 1, 1), "w64": ("rd", 1, 1)}

    def __init__(self, chip: Chip, fusion: bool, deals: bool = True) -> None:
        self.facts = facts = description(chip) if deals else replace(description(chip), register_deal=0)
        self.chip = chip
        self.name, self.lanes = facts.name, facts.lanes
        self.pointer_bits, self.access_bytes = facts.pointer_bits, facts.access_bytes
        self.atomics = atomics.served(chip)
        self.rules = rules(chip, fusion)
        self.combiner = combiner(chip, fusion)

    @property
    def description(self) -> ChipDescription:
        return self.facts

    def literal(self, code: Code, const: Const) -> Operand:
        # Those that PTX has no spelling for go through a register.
        if const.type in ("f16", "bf16"):
            return code.inst("mov.b16", "e16", const.bits)
        if const.type == "packed":
            return code.inst("mov.b32", "w32", const.bits)
        if const.type == "i1":
            return code.inst("mov.pred", "i1", const.bits)
        if const.type == "f32":
            return f"0f{const.bits:08X}"
        if const.type == "f64":
            return f"0d{const.bits:016X}"
        bits = {"i16": 16, "i32": 32, "i64": 64}.get(const.type)
        return const.bits - (1 << bits) if bits and const.bits >> (bits - 1) else const.bits

    def move(self, code: Code, to: Slice, source: Element) -> None:
        opcode = {"p": "mov.pred", "rs": "mov.b16", "r": "mov.b32", "rd": "mov.b64"}[to.reg.cls]
        code.effect(opcode, [to], [source.bits if isinstance(source, Const) else source])

    def unpack(self, code: Code, bits: int, packed: Element, count: int) -> Sequence[Element]:
        if isinstance(packed, Const):
            return [Const("i16" if bits == 16 else "i8", packed.bits >> (bits * i) & ((1 << bits) - 1)) for i in range(count)]
        if bits == 32:
            return code.insts("mov.b64", ("w32", "w32"), packed)
        if bits == 16:
            return code.insts("mov.b32", ("e16", "e16"), packed)[:count]
        return [packed if i == 0 else code.inst("shr.u32", "e8", packed, 8 * i) for i in range(count)]

    def pack(self, code: Code, bits: int, elements: Sequence[Element]) -> Element:
        if bits == 32:
            return code.inst("mov.b64", "w64", *(self.operand(code, e) for e in elements))
        mask = (1 << bits) - 1
        if all(isinstance(e, Const) for e in elements):
            return Const("packed", sum((e.bits & mask) << (bits * i) for i, e in enumerate(elements)))  # type: ignore[union-attr]
        if bits == 16:
            if all((e, 16) in code.parts for e in elements) and len(elements) == 2:
                return _picked(code, *(code.parts[e, 16] for e in elements))  # type: ignore[index]
            low, high = (self._half(code, e) for e in (elements[0], elements[1] if len(elements) > 1 else Const("i16", 0)))
            return code.inst("mov.b32", "w32", low, high)
        words = [e.bits & mask if isinstance(e, Const) else e for e in elements] + [0] * (4 - len(elements))
        # prmt selects bytes of the pair {b, a}: digit 0-3 a byte of a, 4-7 of b (PTX ISA, prmt).
        low = code.inst("prmt.b32", "w32", words[0], words[1], 0x0040)
        if len(elements) <= 2:
            return low
        return code.inst("prmt.b32", "w32", low, code.inst("prmt.b32", "w32", words[2], words[3], 0x0040), 0x5410)

    def _half(self, code: Code, element: Element) -> Slice:
        return code.inst("mov.b16", "e16", element.bits) if isinstance(element, Const) else element

    def parameter(self, code: Code, index: int, type: str) -> Element:
        name = f"[{code.function.name}_param_{index}]"
        if type == "i1":
            return code("nei.i32", code.inst("ld.param.u8", "w32", name), code.i32(0))
        kinds = {"i8": ("u8", "e8"), "i4": ("u8", "e8"), "i16": ("u16", "e16"), "f16": ("b16", "e16"), "bf16": ("b16", "e16"),
                 "i64": ("u64", "w64"), "f64": ("f64", "w64"), "f32": ("f32", "w32"), "i32": ("u32", "w32")}
        kind, form = kinds.get(type, ("u8", "e8"))
        return code.inst(f"ld.param.{kind.replace('f', 'b')}", form, name)

    def thread_id(self, code: Code) -> Element:
        return code.inst("mov.u32", "w32", "%tid.x")

    def program_id(self, code: Code, axis: int) -> Element:
        return code.inst("mov.u32", "w32", f"%ctaid.{'xyz'[axis]}")

    def num_programs(self, code: Code, axis: int) -> Element:
        return code.inst("mov.u32", "w32", f"%nctaid.{'xyz'[axis]}")

    def _opcode(self, base: str, access: LaneAccess) -> str:
        count = len(access.registers)
        space = f".{_SPACES.get(access.space, access.space)}"
        hints = f".volatile{space}" if access.volatile else space + (access.cache or _eviction(access.eviction))
        # An access of bytes uses a wider register; PTX ISA, "Operand Size Exceeding Instruction-Type Size".
        wider = access.bits == 8 or (access.bits == 16 and isinstance(of := access.registers[0], Slice) and of.reg.cls == "r")
        return f"{base}{hints}{f'.v{count}' if count > 1 else ''}.{'u' if wider else 'b'}{access.bits}"

    def load(self, code: Code, access: LaneAccess) -> None:
        code.effect(
            self._opcode("ld", access), access.registers, [access.address, access.immediate],  # type: ignore[arg-type]
            predicate=access.predicate, buffer=access.buffer, volatile=access.volatile,
        )

    def store(self, code: Code, access: LaneAccess) -> None:
        form = {8: "e8", 16: "e16", 32: "w32", 64: "w64"}[access.bits]
        move = f"mov.b{max(access.bits, 16) if access.bits != 8 else 32}"
        registers = [code.inst(move, form, r.bits) if isinstance(r, Const) else r for r in access.registers]
        code.effect(
            self._opcode("st", access), (), [access.address, access.immediate, *registers],
            predicate=access.predicate, buffer=access.buffer, volatile=access.volatile,
        )

    def shared_base(self, code: Code) -> Element:
        return code.inst("mov.u32", "w32", SHARED)

    def shuffle(self, code: Code, mode: str, value: Element, lanes: Element) -> Element:
        # c holds the last lane of the segment, for `up` the first (PTX ISA, shfl.sync).
        clamp = 0 if mode == "up" else self.lanes - 1
        return code.inst(
            f"shfl.sync.{_SHUFFLES[mode]}.b32", "w32", self.operand(code, value), self.operand(code, lanes), clamp, _ALL_LANES
        )

    def uniform(self, code: Code, form: str, value: Element) -> Element:
        return value  # PTX has one kind of register; ptxas finds uniform ones itself

    def copy_async(self, code: Code, copy: AsyncCopy) -> None:
        # `.cg` keeps the bytes out of L1 and takes 16 bytes only (PTX ISA, cp.async).
        level = "cg" if copy.bytes == 16 else "ca"
        size: list[Operand] = []
        if copy.mask is not None:  # bytes beyond the source size become zero
            masked = isinstance(copy.mask, Const)
            size = [0 if masked else code.inst("selp.b32", "w32", copy.bytes, 0, self.operand(code, copy.mask))]
        code.effect(
            f"cp.async.{level}.shared.global", (),
            [copy.address, copy.immediate, copy.source, copy.source_immediate, copy.bytes, *size],
            predicate=copy.predicate, buffer=copy.buffer,
        )

    def descriptor(self, code: Code, index: int) -> Element:
        return copy_engine.descriptor(code, index)

    def bulk_copy(self, code: Code, copy: BulkCopy) -> None:
        copy_engine.copy(code, copy)

    def bulk_store(self, code: Code, store: BulkStore) -> None:
        copy_engine.store(code, store)

    def finish_bulk_stores(self, code: Code, predicate: Slice | None, written: bool) -> None:
        copy_engine.finish_stores(code, predicate, written)

    def atomic(self, code: Code, access: AtomicAccess) -> None:
        atomics.access(code, access)

    def fence(self, code: Code, order: str, scope: str) -> None:
        atomics.fence(code, scope)

    def any_lane(self, code: Code, predicate: Element) -> Slice:
        return atomics.any_lane(code, predicate)

    def commit(self, code: Code) -> None:
        code.effect("cp.async.commit_group")

    def wait(self, code: Code, pending: int) -> None:
        code.effect("cp.async.wait_group", (), [pending])

    def barrier(self, code: Code) -> None:
        code.effect("bar.sync", (), [0])

    def deal_registers(self, code: Code, count: int, more: bool) -> None:
        code.effect(f"setmaxnreg.{'inc' if more else 'dec'}.sync.aligned.u32", (), [count])

    def group_barrier(self, code: Code, threads: int) -> None:
        mbarrier.group(code, threads)

    def begin_barrier(self, code: Code, address: Slice, immediate: int, count: int, predicate: Slice) -> None:
        mbarrier.begin(code, address, immediate, count, predicate)

    def show_barriers(self, code: Code, predicate: Slice) -> None:
        mbarrier.show(code, predicate)

    def arrive(self, code: Code, address: Slice, immediate: int, bytes: int | Slice, copies: bool, predicate: Slice | None) -> None:
        mbarrier.arrive(code, address, immediate, bytes, copies, predicate)

    def arrive_at_peer(self, code: Code, address: Slice, immediate: int, bytes: int | Slice, predicate: Slice | None) -> None:
        mbarrier.arrive_at_peer(code, address, immediate, bytes, predicate)

    def wait_phase(self, code: Code, address: Slice, immediate: int, parity: Slice) -> None:
        mbarrier.wait(code, address, immediate, parity)

    def cluster_rank(self, code: Code) -> Element:
        return code.inst("mov.u32", "w32", "%cluster_ctarank")

    def cluster_barrier(self, code: Code) -> None:
        # `.aligned`: control flow around barriers is uniform.
        code.effect("barrier.cluster.arrive.aligned")
        code.effect("barrier.cluster.wait.aligned")

    def peer_address(self, code: Code, address: Slice, rank: int) -> Slice:
        return code.inst("mapa.shared::cluster.u32", "w32", address, rank)

    def trap(self, code: Code) -> None:
        code.effect("trap")

    def observe(self, code: Code, what: str) -> Element:
        # PTX ISA, "Special Registers": %globaltimer counts nanoseconds. As text it is read where it stands.
        form, text = ("w32", "mov.u32 $0, %smid;") if what == "processor" else ("w64", "mov.u64 $0, %globaltimer;")
        register = code.new_register(form)
        code.effect(inline_assembly.OPCODE, [register], [text])
        return register

    def inline_assembly(self, code: Code, assembly: InlineAssembly) -> Sequence[Element]:
        return inline_assembly.run(self, self.chip, code, assembly)

    def fragment_load(self, code: Code, access: FragmentAccess) -> None:
        load_fragment(code, access)

    def fragment_store(self, code: Code, access: FragmentAccess) -> None:
        store_fragment(code, access)

    def atom(self, code: Code, atom: MatrixAtom, a: Registers, b: Registers, c: Registers, d: Sequence[Slice]) -> None:
        multiply(code, atom, a, b, c, d)

    def begin_products(self, code: Code, factors: Sequence[Slice]) -> None:
        warpgroup.begin(code, factors)

    def asynchronous_atom(
        self, code: Code, atom: MatrixAtom, a: Sequence[Slice] | SharedSource, b: Sequence[Slice] | SharedSource,
        d: Sequence[Slice], adds: Element,
    ) -> None:
        warpgroup.multiply(code, atom, a, b, d, adds)

    def commit_products(self, code: Code) -> None:
        warpgroup.commit(code)

    def wait_products(self, code: Code, pending: int, sums: Sequence[Slice], factors: Sequence[Slice]) -> None:
        warpgroup.wait(code, pending, sums, factors)

    def fence_view(self, code: Code, arrays: bool) -> None:
        warpgroup.fence_view(code, arrays)

    def branch(self, code: Code, label: str) -> None:
        code.effect("bra.uni", targets=(label,))

    def branch_if(self, code: Code, predicate: Slice, label: str, negated: bool) -> None:
        code.effect("bra", targets=(label,), predicate=predicate, predicate_not=negated)

    def exit(self, code: Code) -> None:
        code.effect("ret")


def _picked(code: Code, low: tuple[Slice, int], high: tuple[Slice, int]) -> Element:
    """Two halves of registers as one: prmt selects bytes of the pair {b, a}, digits 0-3 of a and 4-7 of b (PTX ISA, prmt)."""
    selector = (0x10, 0x32)[low[1]] | (0x54, 0x76)[high[1]] << 8
    return code.inst("prmt.b32", "w32", low[0], high[0], selector)


def _eviction(policy: str) -> str:
    return f".L1::{policy}" if policy else ""
