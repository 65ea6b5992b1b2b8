"""LaneChip: what a plugin says of a chip with lanes, so that the kit can select instructions for it.

It lists rules, each for one row and type on one register (or, with a type such as `f16x2`, on a packed one), and a few
primitives: literals, moves, packing, ids, memory, barrier, branches. Every row without a rule is expanded.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar

from tilefw.api.errors import PluginError, UnsupportedError
from tilefw.machine.inst import Operand, Slice
from tilefw.machine.table import InstructionTable
from tilefw.simt.chip_requests import (
    AsyncCopy,
    AtomicAccess,
    BulkCopy,
    BulkStore,
    FragmentAccess,
    InlineAssembly,
    LaneAccess,
    Scale,
    SharedSource,
)
from tilefw.simt.description import ChipDescription, MatrixAtom
from tilefw.simt.lane.registers import form_of
from tilefw.simt.select.code import Code, Const, Element
from tilefw.simt.select.combine import Combiner

Rule = Callable[..., Any]
Registers = Sequence[Element]
"""Packed registers of an operand, in order."""


class LaneChip(ABC):
    """The description of a chip with lanes.

    `lanes` a wave (a power of two), `pointer_bits`, `access_bytes` of the widest memory access of a lane. `forms`
    gives for each register form its (class, width, alignment): `i1` a predicate, `e8` and `e16` one small element,
    `w32` a 32-bit element or packed small ones, `w64` a 64-bit element. The name of an element type may be a form too: elements of
    that type are kept there, ahead of the form of their bits, where they are loaded, carried by loops and branches, or summed up
    by atoms. So `"f32": ("f", 1, 1)` is a register file for floats; packed elements and results of atomic accesses stay in those
    of bits, operands of rules come from either file, and `move` copies from each to each. `combiner` holds the chip's rewrites over
    selected code, if it has any. What only some chips have (shared memory, shuffles, …) raises PluginError (TFW0511) until a
    chip whose description promises it brings it.

    A chip that computes what is equal in all lanes of a wave once for all of them, in registers of its own, names their classes in
    `uniform_classes`, and in `uniform_rules` the rows that it serves on them; `form` says which scalars are kept there. Rules for
    lanes take such registers as operands as well. With `consecutive` the registers of one memory access or matrix operand are
    parts of one register, aligned by `alignment`. `steps` are, by file, the numbers of registers that are worth staying below:
    where there are any, what a loop computes alike in every iteration is moved before it (`machine.hoist`).

    With `byte_pairs` two consecutive elements of 8 bits are loaded at once, into the lowest bits of a packed register.

    With `early_ends` what ends more values than it makes is moved up to what it reads (`machine.early_ends`), and what begins a
    value and ends none down to what reads it (`machine.late_begins`): for chips whose code a compiler orders that goes by how it
    was written.

    `atomics` are the accesses that one call of `atomic` makes, as `kind.type`. With `cas.i32` (and `cas.i64`) alone a chip has
    all kinds of that width and narrower: the kit makes a loop of them, which goes on as long as `any_lane` has one to repeat.
    """

    name: str
    lanes: int
    pointer_bits: int
    access_bytes: int
    forms: ClassVar[Mapping[str, tuple[str, int, int]]]
    rules: Mapping[str, Rule]
    table: InstructionTable
    combiner: Combiner | None = None
    uniform_classes: frozenset[str] = frozenset()
    uniform_rules: Mapping[str, Rule] = MappingProxyType({})
    consecutive: bool = False
    byte_pairs: bool = False
    early_ends: bool = False
    steps: Mapping[str, Sequence[int]] = MappingProxyType({})
    atomics: frozenset[str] = frozenset()

    @property
    def description(self) -> ChipDescription:
        """The plain facts that layouts and lowering read; a chip with more than global memory says so here."""
        return ChipDescription(self.name, self.lanes, self.pointer_bits, self.access_bytes)

    def rule(self, key: str) -> Rule | None:
        """The rule for a row key: the chip's own, else core's expansion; None where there is neither."""
        found = self.rules.get(key)
        return self.expansion(key) if found is None else found

    def expansion(self, key: str) -> Rule | None:
        """Core's rule for a row key, made of other rows; None where it has none."""
        from tilefw.simt.expand.elements import expansion

        return expansion(key)

    def form(self, type: str, uniform: bool) -> str:
        """The form of one element that several places write, as loops and branches do; `uniform` for a scalar of lane IR, which is
        equal in all lanes. By the element's type where `forms` has it, else by its bits."""
        return type if type in self.forms else form_of(type)

    def alignment(self, cls: str, width: int) -> int:
        """The number whose multiples `width` registers of a class begin at, where an instruction takes them together."""
        return 1

    def wide_product(self, code: Code, x: Element, y: Element) -> Element | None:
        """The 64-bit product of two i32 with signs, one of which may be a literal; None where the row `muli.i64` is as good."""
        return None

    def prologue(self, code: Code) -> None:  # noqa: B027 - most chips have none
        """What the program does before anything else, such as to copy what the launch left in physical registers."""

    def operand(self, code: Code, element: Element) -> Operand:
        """An element as a source operand."""
        return self.literal(code, element) if isinstance(element, Const) else element

    @abstractmethod
    def literal(self, code: Code, const: Const) -> Operand:
        """A literal as a source operand."""

    @abstractmethod
    def move(self, code: Code, to: Slice, source: Element) -> None:
        """Copy into a register that others may write too (`code.effect`)."""

    @abstractmethod
    def unpack(self, code: Code, bits: int, packed: Element, count: int) -> Sequence[Element]:
        """The `count` elements of `bits` bits in a 32-bit register, lowest first; with 32 bits, both halves of a 64-bit one."""

    @abstractmethod
    def pack(self, code: Code, bits: int, elements: Sequence[Element]) -> Element:
        """Elements of `bits` bits as one 32-bit register, lowest first; missing upper ones are of no interest.

        With 32 bits, two halves as one 64-bit register.
        """

    @abstractmethod
    def parameter(self, code: Code, index: int, type: str) -> Element:
        """The kernel's parameter; `type` is `i64` or `i32` for pointers."""

    @abstractmethod
    def thread_id(self, code: Code) -> Element:
        """The thread's flat index in its workgroup, as i32."""

    @abstractmethod
    def program_id(self, code: Code, axis: int) -> Element:
        """The workgroup's index along an axis, as i32."""

    @abstractmethod
    def num_programs(self, code: Code, axis: int) -> Element:
        """The grid's size along an axis, as i32."""

    @abstractmethod
    def load(self, code: Code, access: LaneAccess) -> None:
        """Read `registers` (one narrow element, or 32- or 64-bit registers); a false predicate leaves them unchanged."""

    @abstractmethod
    def store(self, code: Code, access: LaneAccess) -> None:
        """Write `registers`."""

    @abstractmethod
    def barrier(self, code: Code) -> None:
        """A barrier of the workgroup."""

    def deal_registers(self, code: Code, count: int, more: bool) -> None:
        """The waves that come here have `count` registers a lane from here on, `more` than before or less."""
        raise self._absent("registers that are dealt out", "deal_registers")

    def group_barrier(self, code: Code, threads: int) -> None:
        """A barrier of the first so many threads of the workgroup, whole waves, which have a role of their own."""
        raise self._absent("barriers that count", "group_barrier")

    def begin_barrier(self, code: Code, address: Slice, immediate: int, count: int, predicate: Slice) -> None:
        """Make a barrier that counts at `immediate` bytes behind `address` in shared memory, of `count` arrivals a phase, by the
        thread for which `predicate` holds."""
        raise self._absent("barriers that count", "begin_barrier")

    def show_barriers(self, code: Code, predicate: Slice) -> None:
        """Have engines, and a cluster's other workgroups, see the barriers that the thread for which `predicate` holds has made.
        They use them behind a barrier of the workgroup, or of the cluster. Nothing where that is enough."""
        return

    def arrive(self, code: Code, address: Slice, immediate: int, bytes: int | Slice, copies: bool, predicate: Slice | None) -> None:
        """Arrive at a barrier that counts, for so many `bytes` besides (a number or i32); with `copies` once its own landed."""
        raise self._absent("barriers that count", "arrive")

    def arrive_at_peer(self, code: Code, address: Slice, immediate: int, bytes: int | Slice, predicate: Slice | None) -> None:
        """The same at a barrier in the shared memory of a workgroup of the cluster, whose address `peer_address` gave."""
        raise self._absent("barriers that count in clusters of workgroups", "arrive_at_peer")

    def wait_phase(self, code: Code, address: Slice, immediate: int, parity: Slice) -> None:
        """Until the phase of a parity (a register of i32) of a barrier that counts is over."""
        raise self._absent("barriers that count", "wait_phase")

    def cluster_rank(self, code: Code) -> Element:
        """The number of the workgroup in its cluster, as i32."""
        raise self._absent("clusters of workgroups", "cluster_rank")

    def cluster_barrier(self, code: Code) -> None:
        """A barrier of all workgroups of the cluster, behind which each sees what the others stored before it."""
        raise self._absent("clusters of workgroups", "cluster_barrier")

    def peer_address(self, code: Code, address: Slice, rank: int) -> Slice:
        """The address, for a store in the space `cluster` (`LaneAccess.space`), of what stands at `address` of this workgroup's
        shared memory in that of workgroup `rank` of the cluster."""
        raise self._absent("clusters of workgroups", "peer_address")

    def trap(self, code: Code) -> None:
        """Give the launch up: an assertion of a debug build failed."""
        raise UnsupportedError(
            f"{self.name} has no trap, which assertions of debug builds need", code="TFW0611", help="launch without debug=True"
        )

    def observe(self, code: Code, what: str) -> Element:
        """What the machine knows, of `nanoseconds` and `ticks` (i64) and `processor` (i32), as far as the target claims them
        (`observe.*`); a time by an instruction that has an effect, as readings differ."""
        raise self._absent("clocks and numbered processors", "observe")

    def inline_assembly(self, code: Code, assembly: InlineAssembly) -> Sequence[Element]:
        """Run the text, and give what its results hold: an element each, or a packed register. Raises CompileError for text that
        the chip's assembler does not take, and for registers that it does not have."""
        raise UnsupportedError(f"{self.name} takes no inline assembly", code="TFW0619")

    def shared_base(self, code: Code) -> Element:
        """Where the workgroup's shared memory begins, as i32."""
        raise self._absent("shared memory", "shared_base")

    def shuffle(self, code: Code, mode: str, value: Element, lanes: Element) -> Element:
        """The 32-bit register of another lane of the wave; `mode` as in `lane.shuffle`, `lanes` its amount or lane."""
        raise self._absent("shuffles", "shuffle")

    def uniform(self, code: Code, form: str, value: Element) -> Element:
        """A value of a form that is equal in all threads, where branches and uniform addresses want it."""
        raise self._absent("uniform values", "uniform")

    def copy_async(self, code: Code, copy: AsyncCopy) -> None:
        """Start one copy."""
        raise self._absent("asynchronous copies", "copy_async")

    def commit(self, code: Code) -> None:
        """Close a group of copies."""
        raise self._absent("asynchronous copies", "commit")

    def wait(self, code: Code, pending: int) -> None:
        """Until all but the last `pending` groups have landed."""
        raise self._absent("asynchronous copies", "wait")

    def descriptor(self, code: Code, index: int) -> Element:
        """The descriptor of an array that the launch passes as the kernel's parameter, where `bulk_copy` wants it."""
        raise self._absent("a copy engine", "descriptor")

    def bulk_copy(self, code: Code, copy: BulkCopy) -> None:
        """Have the copy engine start one copy."""
        raise self._absent("a copy engine", "bulk_copy")

    def bulk_store(self, code: Code, store: BulkStore) -> None:
        """Have the copy engine start one store."""
        raise self._absent("a copy engine that stores", "bulk_store")

    def finish_bulk_stores(self, code: Code, predicate: Slice | None, written: bool) -> None:
        """Until the engine has read, from shared memory, all that this thread had it store, or has `written` it; where `predicate`
        holds."""
        raise self._absent("a copy engine that stores", "finish_bulk_stores")

    def atomic(self, code: Code, access: AtomicAccess) -> None:
        """Make one access of those in `atomics`, and what its order takes."""
        raise self._absent("atomics", "atomic")

    def fence(self, code: Code, order: str, scope: str) -> None:
        """`release`: atomics behind it publish what this lane and those that it met at a barrier have written. `acquire`: accesses
        behind it see what the atomics before it were told of. `acq_rel`: both, the release first."""
        raise self._absent("atomics", "fence")

    def any_lane(self, code: Code, predicate: Element) -> Slice:
        """Whether a predicate holds in any lane of the wave, where `branch_if` wants it."""
        raise self._absent("atomics", "any_lane")

    def fragment_load(self, code: Code, access: FragmentAccess) -> None:
        """Read matrices into `access.registers`."""
        raise self._absent("fragment loads", "fragment_load")

    def fragment_store(self, code: Code, access: FragmentAccess) -> None:
        """Write the matrices in `access.registers`."""
        raise self._absent("fragment stores", "fragment_store")

    def atom(self, code: Code, atom: MatrixAtom, a: Registers, b: Registers, c: Registers, d: Sequence[Slice]) -> None:
        """d = a · b + c on packed registers; `d` may be `c`."""
        raise self._absent("matrix atoms", "atom")

    def scaled_atom(
        self, code: Code, atom: MatrixAtom, a: Registers, b: Registers, c: Registers, d: Sequence[Slice], a_scale: Scale,
        b_scale: Scale,
    ) -> None:
        """`atom` for an atom with scales (`MatrixAtom.scales`)."""
        raise self._absent("matrix atoms with scales", "scaled_atom")

    def begin_products(self, code: Code, factors: Sequence[Slice]) -> None:
        """Asynchronous atoms behind it see the registers that lanes wrote before it.

        It reads `factors`, those that the atoms take operands from (`Inst.implicit_uses`): what writes them stays before it.
        """
        raise self._absent("asynchronous atoms", "begin_products")

    def asynchronous_atom(
        self, code: Code, atom: MatrixAtom, a: Sequence[Slice] | SharedSource, b: Sequence[Slice] | SharedSource,
        d: Sequence[Slice], adds: Element,
    ) -> None:
        """Start d = a · b + d or, where `adds`, an i1 that is equal in all lanes, is false, d = a · b."""
        raise self._absent("asynchronous atoms", "asynchronous_atom")

    def commit_products(self, code: Code) -> None:
        """The atoms that were started since the last commit are one product."""
        raise self._absent("asynchronous atoms", "commit_products")

    def wait_products(self, code: Code, pending: int, sums: Sequence[Slice], factors: Sequence[Slice]) -> None:
        """Until all but the last `pending` products are done. What reads or writes `sums` stays behind it, as an instruction does
        that reads and writes them (`Inst.implicit_uses`, `implicit_defs`). Until then they may read `factors`, registers of theirs:
        it reads these too, so that they hold nothing else before."""
        raise self._absent("asynchronous atoms", "wait_products")

    def fence_view(self, code: Code, arrays: bool) -> None:
        """Matrix units see behind it what this lane and its copies wrote to shared memory before it."""
        raise self._absent("views of shared memory", "fence_view")

    def _absent(self, feature: str, method: str) -> PluginError:
        return PluginError(
            f"the description of {self.name} promises {feature}, but its LaneChip does not have {method}", code="TFW0511"
        )

    @abstractmethod
    def branch(self, code: Code, label: str) -> None:
        """Go to `label`."""

    @abstractmethod
    def branch_if(self, code: Code, predicate: Slice, label: str, negated: bool) -> None:
        """Go to `label` where the predicate, uniform over the workgroup, holds (or, negated, does not)."""

    @abstractmethod
    def exit(self, code: Code) -> None:
        """End the program."""


def template(opcode: str, form: str) -> Rule:
    """A rule that emits the instruction `opcode` on its operands in order; the result is a new register of `form`."""

    def rule(code: Code, *operands: Element) -> Element:
        return code.inst(opcode, form, *(code.chip.operand(code, o) for o in operands))

    return rule


def alias(code: Code, x: Element) -> Element:
    """A rule that emits nothing: the result is the operand's register, for casts to a type whose upper bits are not read."""
    return x
