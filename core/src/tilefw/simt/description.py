"""ChipDescription: the plain facts of a chip with lanes that layouts and lowering read; no instruction stands here.

A plugin fills one in (`LaneChip.description`). A chip that lacks a feature leaves its field empty, and the kit goes another
way: without shuffles or asynchronous copies through shared memory, without fragment loads by wide reads, without a matrix
atom by multiply-adds of its lanes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tilefw.simt.layout import LinearLayout


@dataclass(frozen=True)
class AtomScales:
    """Further operands of an atom: a power of two for each `group` consecutive k of a row of a and of a column of b.

    Codes are e8m0 (2^(code - 127), 255 for NaN), a byte of a register for each atom. The layouts have shapes (m, k / group) and
    (n, k / group); a lane holds one code of each.
    """

    group: int
    a_layout: LinearLayout
    b_layout: LinearLayout


@dataclass(frozen=True)
class SharedForm:
    """How an operand lies in shared memory that a matrix unit reads from there by itself.

    A row is `row_bytes` bytes along one dim of the operand: k with `along_k`, else m or n. `rows` rows, neighbours along the other
    dim, follow one another and are a pattern, which begins at a multiple of its size. Within it pieces of `piece_bytes`
    bytes are exchanged: a bit of a byte's place that chooses the row is XORed to the one log2(`rows`) below it, where that chooses
    the piece of a row. Patterns follow one another along the other dim, and behind the last of these along the row's.
    """

    row_bytes: int
    along_k: bool
    rows: int = 8
    piece_bytes: int = 16

    @property
    def pattern_bytes(self) -> int:
        """Bytes from one pattern to the next."""
        return self.rows * self.row_bytes


@dataclass(frozen=True)
class MatrixAtom:
    """One matrix instruction: d[m, n] = a[m, k] · b[k, n] + c[m, n], c and d in the same registers.

    `a`, `b` and `d` name element types as tile IR does (`f16`, `i8`, `f32`). `precision` says what f32 operands are taken for
    (`tf32`); it is empty where products are exact. `unsigned` says how i8 is read. The layouts have shapes (m, k), (k, n) and
    (m, n), and bases for `waves` waves (1, or more where waves work together; a wave bit that holds copies has a zero basis).
    `cost` is in issue cycles of a wave. With `asynchronous` the result may be touched only after a wait.

    An operand with `a_forms` or `b_forms` stands in shared memory, in one of them, and the unit reads it there until that wait. Its
    layout then says which threads give the address of its first element: all of its waves.

    Two elements of e2m1 are a byte: the layout of such an operand has half as many k, each two neighbours, the even one in the low
    bits. With `scales` the product is of elements times the powers of two of their groups. An `imprecise` atom keeps sums shorter
    than `d` is, and serves dots that allow it.
    """

    name: str
    m: int
    n: int
    k: int
    a: str
    b: str
    d: str
    a_layout: LinearLayout
    b_layout: LinearLayout
    d_layout: LinearLayout
    cost: float
    precision: str = ""
    unsigned: bool = False
    waves: int = 1
    asynchronous: bool = False
    scales: AtomScales | None = None
    a_forms: tuple[SharedForm, ...] = ()
    b_forms: tuple[SharedForm, ...] = ()
    imprecise: bool = False


@dataclass(frozen=True)
class FragmentLoad:
    """An instruction by which a wave reads small matrices from shared memory, straight into fragments.

    It reads up to `most` matrices of `rows` rows of `row_bytes` bytes; lane `rows`·i + r gives the address of row r of matrix i.
    In matrix i's register a lane holds 4 bytes of a row: lane bits 0… choose the bytes, the bits above the row. `transposed`:
    the chip can also exchange rows and columns of cells of `cell_bits` bits on the way.
    """

    name: str
    rows: int
    row_bytes: int
    cell_bits: int
    most: int
    transposed: bool


@dataclass(frozen=True)
class TransposedLoad:
    """An instruction by which groups of 2^`group` lanes read shared memory and exchange rows for columns on the way.

    Each lane reads `bytes` bytes at its own address, a row of c elements of `cell_bits` bits. Lane j of a group receives element
    j mod c of every row that a lane i of its group read with i mod (2^`group` / c) = j div c, in the order of these lanes.
    """

    name: str
    group: int
    bytes: int
    cell_bits: int


@dataclass(frozen=True)
class RoleRegisters:
    """What code of the chip takes of a lane's registers: `copying` in a producer whose lanes copy, `starting` in one that only
    starts a copy engine, `beside_sums` in consumers beside the sums that they carry."""

    copying: int = 0
    starting: int = 0
    beside_sums: int = 0


@dataclass(frozen=True)
class CopyEngine:
    """A unit that copies blocks of arrays to shared memory by itself; a thread starts it, and a counting barrier tells of the end.

    Of the array it is told by a descriptor of `descriptor_bytes`, at a multiple of `descriptor_alignment`, which the launch passes
    (`LaneChip.descriptor`). The array has up to `rank` dims of elements of `element_bytes`, the innermost without gaps; it begins,
    and its other dims go on, at multiples of `alignment` bytes, as a row of a block has. A block has up to `extent` elements along
    each dim. What is beyond the array comes as zeros. In shared memory, from a multiple of `shared_alignment` bytes
    on, rows follow one another; those of as many bytes as one of `forms` has can have their pieces exchanged as that says. An
    engine that `stores` copies blocks to arrays as well: from places that are not negative on, and nothing of what is beyond.
    With `clusters` one copy may go to the same place in the shared memory of all workgroups of a cluster, and completes on the
    barrier at the same place in each.
    """

    rank: int
    extent: int
    alignment: int
    element_bytes: tuple[int, ...]
    descriptor_bytes: int
    descriptor_alignment: int
    forms: tuple[SharedForm, ...] = ()
    shared_alignment: int = 16
    stores: bool = False
    clusters: bool = False


@dataclass(frozen=True)
class ChipDescription:
    """The facts. Sizes in bytes; `lanes` a power of two.

    `access_bytes` the widest access of a lane to global memory, which has to be aligned to its width, or to no more than
    `alignment` where that is not 0; `shared_access_bytes` the widest to shared memory. `shared_bytes` what a
    workgroup may have, 0 for none. A lane reads one of `banks` banks of `bank_bytes` a cycle. `copy_bytes` the sizes of
    asynchronous copies from global to shared memory, empty for none. `threads` the most threads of a workgroup. `registers` of 32
    bits are what a lane can have, 0 where nobody minds. A wave's instruction is issued in `issue_cycles`. Workgroups run side by
    side as long as `shared_bytes`, `processor_registers` and `processor_threads` last, 0 where that does not matter. Where they
    have more shared memory together than one may have, that is `processor_shared_bytes`, of which each takes `system_shared_bytes`
    beside its own.
    `store_bytes` are what a store to global memory moves at least, from each place: less where the cache puts the parts of a line
    together that several instructions store.

    `exchanges`: distances of lanes, as XOR of their indices, over which a value goes in one instruction of the vector unit.
    `scan_shuffles`: the modes of `lane.shuffle`, of `up`, `down`, `lower` and `upper`, that the chip has without a lane's index.

    `grid` has the most programs of a launch along each axis, `grid_threads` the most threads along the first, 0 where that is said.

    `copies_consecutive`: an asynchronous copy puts what a wave's lanes copy one behind the other, from one address of the wave on.
    Their order is then chosen by which lane reads what. Each of them writes: where a mask or `when` is false, zeros.
    `transposed_loads` serve readers to whom a row of a buffer is not a run of registers.

    `offsets`: accesses to global memory add 32 bits of the lane, without a sign, to an address that is equal in all lanes.
    `barrier_bytes`: a barrier in shared memory that counts arrivals and bytes, by phases; 0 where there is none.
    `register_deal`: waves can hand registers of their lanes to others while they run, a multiple of so many each; 0 where not.
    `copy_engine` copies blocks by itself, and takes `barrier_bytes`.
    `role_waves`: of so many waves a group is made that has a role of its own; `role_registers` are what roles take.
    `fragment_stores` write what fragment loads of the same description read.
    `shared_views`: matrix units that read shared memory by themselves see what lanes and their copies wrote there behind a fence.
    `clusters`: the most workgroups, neighbours in the grid, that may run together and store to each other's shared memory.
    `waves_leave`: a wave may end early, and barriers wait for the others alone.
    `bounded`: those take a limit as well, beyond which they read zeros and write nothing; each `bound_bytes` of an access by
    themselves, 0 for an access as a whole.
    """

    name: str
    lanes: int
    pointer_bits: int
    access_bytes: int
    threads: int = 1024
    shared_bytes: int = 0
    alignment: int = 0
    shared_access_bytes: int = 16
    banks: int = 32
    bank_bytes: int = 4
    shuffles: bool = False
    exchanges: tuple[int, ...] = ()
    scan_shuffles: tuple[str, ...] = ()
    copy_bytes: tuple[int, ...] = ()
    copies_consecutive: bool = False
    atoms: tuple[MatrixAtom, ...] = ()
    fragment_loads: tuple[FragmentLoad, ...] = ()
    fragment_stores: tuple[FragmentLoad, ...] = ()
    transposed_loads: tuple[TransposedLoad, ...] = ()
    registers: int = 0
    processor_registers: int = 0
    processor_threads: int = 0
    processor_shared_bytes: int = 0
    system_shared_bytes: int = 0
    issue_cycles: int = 1
    store_bytes: int = 32
    offsets: bool = False
    bounded: bool = False
    bound_bytes: int = 0
    grid: tuple[int, int, int] = (2**31 - 1, 2**31 - 1, 2**31 - 1)
    grid_threads: int = 0
    waves_leave: bool = False
    clusters: int = 1
    shared_views: bool = False
    register_deal: int = 0
    role_waves: int = 1
    role_registers: RoleRegisters = RoleRegisters()
    barrier_bytes: int = 0
    copy_engine: CopyEngine | None = None


@dataclass(frozen=True)
class LaneMachine:
    """A chip and the waves that make a program: of a workgroup or, of several `workgroups`, of a cluster, which is lowered as one
    workgroup of that many waves. What is shared then is so in all of them: each has a copy of the program's shared memory, to which
    everybody writes.

    `small`: no buffer of an argument is larger than `UNDER_2_GIB` (the launch fact), and a scalar pointer that a loop moves, or
    moves a block from, is no further than that from what is accessed from it; it is never said of kernels that
    reach peers' copies. `disjoint`: buffers of different arguments do not overlap (the launch fact).
    """

    chip: ChipDescription
    waves: int
    small: bool = False
    workgroups: int = 1
    disjoint: bool = False

    @property
    def lanes(self) -> int:
        """Lanes of a wave."""
        return self.chip.lanes

    @property
    def threads(self) -> int:
        """Lanes of all waves of the program."""
        return self.chip.lanes * self.waves

    @property
    def workgroup_threads(self) -> int:
        """Lanes of the waves of one workgroup."""
        return self.threads // self.workgroups

    @property
    def grid(self) -> tuple[int, int, int]:
        """The most programs of a launch along each axis."""
        x, y, z = self.chip.grid
        return (min(x, self.chip.grid_threads // self.threads) if self.chip.grid_threads else x, y, z)

    @property
    def access_bytes(self) -> int:
        """Bytes of the widest access of a lane to global memory."""
        return self.chip.access_bytes

    def side_by_side(self, shared_bytes: int) -> int:
        """How many workgroups of so much shared memory run side by side, whatever registers they take; 0 where the chip does not
        say."""
        chip = self.chip
        if not (chip.registers and chip.processor_registers and chip.processor_shared_bytes):
            return 0
        by_registers = chip.processor_registers // (chip.registers * self.workgroup_threads)
        return min(by_registers, chip.processor_shared_bytes // (shared_bytes + chip.system_shared_bytes))


def lane_machine(
    chip: ChipDescription, waves: int, workgroups: int, small: bool = False, disjoint: bool = False
) -> LaneMachine:
    """The machine for programs of so many workgroups of so many waves each. Where several have copies of a program's shared memory
    there are copies of an engine that can go to all, and none of lanes, nor stores of an engine, which would read one."""
    if workgroups > 1:
        engine = chip.copy_engine
        kept = replace(engine, stores=False) if engine is not None and engine.clusters else None
        chip = replace(chip, copy_bytes=(), copy_engine=kept, barrier_bytes=chip.barrier_bytes if kept else 0)
    return LaneMachine(chip, waves * workgroups, small, workgroups, disjoint)
