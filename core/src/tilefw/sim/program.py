"""What the simulator asks of machine code: a program of decoded instructions, each with its meaning, operands and flow.

An instruction set decodes its text or bytes to `Instruction`s; the kit knows nothing else of it. Everything that costs
time is done once, at decode: operands are resolved to register numbers and constants, and `meaning` is the row's
function for exactly these modifiers (a closure or a `functools.partial`), called with the source values in order:

    meaning(lanes, *sources) -> None | Value | tuple[Value, ...]

`lanes` is a `tilefw.sim.algebra.primitives.Algebra`. One result stands for each destination, in order. The guard is *not* the
meaning's business: the kit evaluates it, restricts memory, atomics and cross-lane primitives to the lanes where it
holds, and leaves the destinations of all other lanes as they were. Neither are registers: the kit reads sources
before and writes destinations after the call. A meaning never branches in Python on a value, keeps nothing between
calls, and may be called twice for one step when it has no effect but loads (see `algebra.Algebra.load`).

Example, for a made-up instruction `mad r3, r1, 7, r2`:

    Instruction(
        index=5, text="mad r3, r1, 7, r2", mnemonic="mad", unit="alu",
        meaning=lambda lanes, a, b, c: lanes.add(lanes.mul(a, b), c),
        sources=(Register(1, 32), Immediate(7, 32), Register(2, 32)), destinations=(Register(3, 32),),
    )

Registers are numbered from 0 over all classes of one program (a decoder numbers `%r1`, `%rd1`, `%p1` as it meets them);
each has one width in bits; a predicate is a register of 1 bit. A chip with physical registers whose operands span
several gives a `Registers` operand, joined lowest first by the kit.

A chip whose program counter belongs to a wave (`SimulatedChip.pc_per_lane` False) leaves its lanes to the code: all lanes of a wave
step, `Instruction.guard` on a predicate that the code keeps says which of them act, `Instruction.wave` marks what happens once
for the wave, and `Program.wave_registers` hold its results. What such code promises by itself is stated as facts: results
that arrive later (`Issue`, `Wait`; see queues.py) and results that may not be touched too soon (`Hazards`; see hazards.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from tilefw.api.errors import Place

if TYPE_CHECKING:
    from tilefw.sim.algebra.primitives import Algebra, Value


MULTICAST = "multicast"
"""The `unit` of instructions whose addresses stand for all ranks' copies: links carry what they move once, not once a rank."""


@dataclass(frozen=True, slots=True)
class Register:
    """Register `index` of the program, whole; `bits` is 1 for a predicate, else 8, 16, 32, 64 or 128."""

    index: int
    bits: int


@dataclass(frozen=True, slots=True)
class Registers:
    """Consecutive bits of one value in several registers, lowest first (`v[2:3]`)."""

    parts: tuple[Register, ...]

    @property
    def bits(self) -> int:
        """The width of all parts together."""
        return sum(part.bits for part in self.parts)


@dataclass(frozen=True, slots=True)
class Immediate:
    """A constant as its bit pattern (floats already encoded), 0 <= value < 2**bits."""

    value: int
    bits: int


@dataclass(frozen=True, slots=True)
class Symbol:
    """The address of a variable of the program plus `offset`; known when the program is loaded (global, const) or
    laid out at the launch (shared, local, param). The value is an address within the variable's own space."""

    name: str
    offset: int = 0
    bits: int = 64


@dataclass(frozen=True, slots=True)
class Special:
    """A special register: `meaning(lanes)` makes its value from primitives (`lanes.thread_id(0)`)."""

    name: str
    bits: int
    meaning: Callable[[Algebra], Value]


@dataclass(frozen=True, slots=True)
class Sink:
    """A destination that is thrown away (`_`)."""

    bits: int = 32


Source = Register | Registers | Immediate | Symbol | Special
"""What an instruction reads."""
Destination = Register | Registers | Sink
"""What an instruction writes."""


@dataclass(frozen=True, slots=True)
class Guard:
    """The instruction acts only in lanes where the predicate is true (false when `negated`)."""

    register: Register
    negated: bool = False


# --- where execution goes next; an instruction without flow falls through to index + 1 -------------------------------


@dataclass(frozen=True, slots=True)
class Branch:
    """Lanes where the guard holds (all lanes without a guard) go to instruction `target`, others fall through.
    `uniform`: the code promises that all active lanes of a wave agree (a broken promise is a finding).

    Instead of a guard the instruction may have a `meaning`: its first result is the condition, a predicate of the wave; the others
    go to the destinations."""

    target: int
    uniform: bool = False


@dataclass(frozen=True, slots=True)
class BranchTable:
    """A lane goes to `targets[value of source 0]`; an index outside is a fault."""

    targets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Jump:
    """Go to an address of the program's code (64 bits): source 0, or the first result of the instruction's `meaning`, whose
    others go to the destinations (a return address). An address where `Program.code` has no instruction is a finding, and
    ends the launch."""


@dataclass(frozen=True, slots=True)
class Call:
    """Go to `target`, remembering index + 1 for each lane; registers are not saved (the calling code does that)."""

    target: int


@dataclass(frozen=True, slots=True)
class Return:
    """Back to the innermost `Call` of the lane; without one, the thread ends."""


@dataclass(frozen=True, slots=True)
class Exit:
    """The thread ends."""


@dataclass(frozen=True, slots=True)
class Barrier:
    """Wait at a barrier. Sources, in order: the barrier's number (16 or 32 bits), then, when `counted`, how many
    threads (with `counts` "waves": waves) take part, then, when `reduce`, a predicate. `scope` "workgroup": threads of the
    workgroup, all unless counted; "wave": lanes of the wave named by source 0, a mask of members.

    `action` "sync" waits; "arrive" counts and goes on. `aligned`: all lanes of a wave must arrive together.
    A `reduce` barrier gives its one destination the "popc" (32 bits), "and" or "or" (1 bit) over the participants.
    """

    scope: Literal["workgroup", "wave"] = "workgroup"
    action: Literal["sync", "arrive"] = "sync"
    counted: bool = False
    aligned: bool = True
    reduce: Literal["popc", "and", "or"] | None = None
    counts: Literal["threads", "waves"] = "threads"


@dataclass(frozen=True, slots=True)
class Meeting:
    """Wait for the others of `waves` neighbouring waves, which come to the same place (`Instruction.gathers`)."""

    waves: int


@dataclass(frozen=True, slots=True)
class Await:
    """Wait until the instruction's `meaning`, which is asked again whenever a barrier has changed, gives true: its one result, a
    predicate of 1 bit. Where nobody else can go on it may give up: the result is false then."""


Flow = Branch | BranchTable | Jump | Call | Return | Exit | Barrier | Meeting | Await
"""Where control goes after an instruction that says so."""


# --- results that arrive later --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Issue:
    """An event of the wave in `queue`, begun whenever the wave executes the instruction, unfinished until a wait covers it.

    Events of one `order` finish in the order of their issue; events of different orders, and all of order "", in any. An
    instruction may begin several events.

    `pending` are registers (numbers) that the event writes when it finishes: to read one before, or to write one except by a
    later event of the same queue and order, is a finding of the check "pending". `merged` are those of them that the
    event changes only in part: the instruction's last sources are their old values, which the event combines with its own when it
    finishes, so that an earlier event of the same queue and order may be pending on them. Numbers behind those of registers may
    be effects that no register shows, for `Instruction.needs` to ask for. `behind`: the event has something to do, so
    that its `pending` counts, only when it begins while one of these is pending.

    `settles`: what the instruction does in shared memory is finished only with the event. Before that a barrier does not order it
    with other waves (check "races"), and the asynchronous copies that it starts have not landed. Other memory is ordered
    from the issue on.

    `grouped`: a unit of its own, which several waves start together, does the event, between the issue and a wait (check "pending",
    checks/groups.py). The events that a wave begins until an `Instruction.commits` of the queue are a group, and waits of the queue
    count groups. `read` are registers that the unit reads meanwhile: they may be read, but not written. Later events of the same
    order change `pending` registers one after the other.
    """

    queue: str
    order: str = ""
    pending: tuple[int, ...] = ()
    merged: tuple[int, ...] = ()
    settles: bool = False
    behind: tuple[int, ...] = ()
    grouped: bool = False
    read: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Wait:
    """Before the instruction executes, the wave waits until, of each queue, at most so many events are unfinished.

    An event is known to be finished when every order of finishing that is possible has it finished: of an ordered kind, when at
    least `n` later events of its kind were issued; of order "", when `n` is 0. A queue may be limited once.
    """

    limits: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Instruction:
    """One decoded instruction. `index` is its place in `Program.instructions`, which is its program counter.

    `text` is the instruction as written, `mnemonic` its full opcode, `unit` the pipe that counters go by. `code` is its
    place in the machine code, `source` the user's own line where line information says so. With a `flow`, `meaning` is
    None, except that of a `Branch`, `Jump` or `Await`. `row` is whatever the instruction set wants to find again (its table row);
    the kit hands it on untouched.

    `wave`: it executes once for the wave. Its meaning sees values with one lane, its sources and destinations are constants,
    special registers and wave registers, and its guard, if any, is one of these. `issues` and `waits`: see there. `needs` are
    what of `Issue.pending` must be there when it executes, though it neither reads nor writes it: effects on memory.

    `gathers`: so many neighbouring waves of the workgroup, counted from the first, execute it together; the first to come wait.
    `commits`: queues whose open group it closes (`Issue.grouped`). `fences`: queues whose later events see the registers as the
    wave leaves them now: a grouped event on a register that the wave has accessed since is a finding.
    """

    index: int
    text: str
    mnemonic: str
    unit: str
    meaning: Callable[..., Any] | None = None
    sources: tuple[Source, ...] = ()
    destinations: tuple[Destination, ...] = ()
    guard: Guard | None = None
    flow: Flow | None = None
    code: Place | None = None
    source: Place | None = None
    row: Any = None
    wave: bool = False
    issues: tuple[Issue, ...] = ()
    waits: Wait | None = None
    needs: tuple[int, ...] = ()
    gathers: int = 0
    commits: tuple[str, ...] = ()
    fences: tuple[str, ...] = ()


# --- results that may not be touched too soon -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HazardRule:
    """A consumer must come at least `needed(producer, consumer)` wait states after a producer that shares a register with it.

    `produces` and `consumes` give registers (numbers) of an instruction, none where the rule does not concern it; they are asked
    once an instruction. Wait states are those of the instructions between the two: none when they are neighbours. `section`
    is where the rule is written. `horizon`: no pair needs more.
    """

    name: str
    section: str
    produces: Callable[[Instruction], Iterable[int]]
    consumes: Callable[[Instruction], Iterable[int]]
    needed: Callable[[Instruction, Instruction], int]
    horizon: int = 32


@dataclass(frozen=True, slots=True)
class Hazards:
    """The rules of a chip, and how many wait states an instruction gives to those around it (1 for most, more for a pause).

    `producing` gives the numbers of the rules under which an instruction may produce something, ascending: the others are not
    asked. None: any of them.
    """

    rules: tuple[HazardRule, ...]
    wait_states: Callable[[Instruction], int]
    producing: Callable[[Instruction], Sequence[int]] | None = None


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of the program: `space` is "global", "const", "shared", "local" or one of `SimulatedChip.spaces`; `data` its
    initial bytes, None for none.

    A shared variable with `size` 0 is the workgroup's dynamic shared memory, placed behind all others. `pointers` are places of a
    global variable that hold addresses within it: (offset, offset that the 64 bits there point to). A store to a `readonly` global
    variable is reported.
    """

    name: str
    space: str
    size: int
    alignment: int = 1
    data: bytes | None = None
    code: Place | None = None
    pointers: tuple[tuple[int, int], ...] = ()
    readonly: bool = False


@dataclass(frozen=True, slots=True)
class ProgramParameter:
    """A parameter of the entry: bytes [offset, offset + size) of the argument block."""

    name: str
    offset: int
    size: int
    alignment: int
    pointer: bool = False


@dataclass(frozen=True, slots=True)
class OffsetPromises:
    """What a compiler promises of the offsets that its code computes, by the numbers of instructions.

    An access means the sums, products and choices that instructions in `exact` make as exact integers, of operands that are so too.
    Copies stand for what they copy. All else gives numbers of its own, with a sign, but for `lost`: exact integers of which nothing
    is known. `wide` tells, of an instruction's destinations, which hold the low half of an integer; the next one holds the high
    half.
    """

    exact: frozenset[int] = frozenset()
    lost: frozenset[int] = frozenset()
    wide: Mapping[int, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Program:
    """One entry, decoded. `registers` are the widths in bits by register number, `register_names` as the code spells them.

    Shared and local variables get addresses in order, each at its alignment; `Symbol`s refer to variables and
    parameters by name. `required_workgroup` is the only block size that the code allows, `max_workgroup` the most
    threads. Instructions of functions that the entry calls follow its own.

    `wave_registers` hold one value for the wave: a result for one is written whenever the wave executes the instruction, whatever
    the guard says (lanes without the guard still take no part in its primitives). `initial` are registers that hold a value at
    the start, of their width (an Immediate, a Special or a Symbol); all others are undefined then.

    `arguments_in_memory`: the argument block is a read-only allocation, made for the launch (`Algebra.argument_address`), and
    parameters are not symbols. `code` is (variable that holds the machine code, {byte offset: instruction}): where a `Jump` may go.
    Each of these instructions begins a block where the program has a `Jump`, so fewer offsets run faster. `promises` tells what
    accesses mean; None: the code tells it, as that of other compilers does. `cluster` are the workgroups of a cluster along each
    axis; such run together.
    """

    name: str
    instructions: Sequence[Instruction]
    registers: Sequence[int]
    register_names: Sequence[str] = ()
    parameters: tuple[ProgramParameter, ...] = ()
    variables: tuple[Variable, ...] = ()
    required_workgroup: tuple[int, int, int] | None = None
    max_workgroup: int | None = None
    wave_registers: frozenset[int] = frozenset()
    initial: tuple[tuple[int, Source], ...] = ()
    arguments_in_memory: bool = False
    code: tuple[str, Mapping[int, int]] | None = None
    hazards: Hazards | None = None
    promises: OffsetPromises | None = None
    cluster: tuple[int, int, int] = (1, 1, 1)


SpaceOwner = Literal["workgroup", "wave", "lane"]
"""Who has a copy of a memory space."""


@dataclass(frozen=True, slots=True)
class MemorySpace:
    """A memory space of the chip's own: meanings name it as they name "shared" (`Algebra.load`). Each `owner` has a copy with
    addresses from 0, as large as the program's variables in it, `limit` bytes at most. Its bytes are undefined at the start."""

    name: str
    owner: SpaceOwner
    limit: int


@dataclass(frozen=True, slots=True)
class SimulatedChip:
    """What the engine must know of a chip beyond its instructions.

    `pc_per_lane`: lanes of a wave may be at different instructions, rejoining at the lowest (else a branch takes the
    whole wave and its condition must be uniform; masks are then the code's business). `max_threads_along` are the most threads of
    a launch along an axis, 0 where `max_grid` says all. `windows` are the address
    ranges in which generic addresses mean another space. `resident_workgroups` may wait for one another. `shared_banks` are
    banks of 4 bytes. Global memory is allocated from `first_address` up, aligned and never at 0, below 2**`address_bits`; a pointer
    parameter has as many bits. `mask_stack` is how many masks a wave with one program counter can push (`Algebra.push_mask`), 0 to
    62: lanes that sleep are then the simulator's business, and instructions need no guard. `spaces` are memory spaces beside those
    that every chip may have ("global", "shared", "local", "param", "const"). `max_cluster` are the most workgroups of a cluster.
    `registers` are those that waves of a workgroup may hand to each other (`Algebra.deal_registers`), 0 where that is not limited.
    """

    name: str
    wave_size: int = 32
    pc_per_lane: bool = True
    max_threads: int = 1024
    max_grid: tuple[int, int, int] = (2**31 - 1, 65535, 65535)
    max_threads_along: int = 0
    shared_bytes: int = 48 * 1024
    local_bytes: int = 512 * 1024
    resident_workgroups: int = 1024
    shared_banks: int = 32
    address_bits: Literal[32, 64] = 64
    first_address: int = 1 << 36
    mask_stack: int = 0
    spaces: tuple[MemorySpace, ...] = ()
    max_cluster: int = 1
    registers: int = 0
    windows: Mapping[str, tuple[int, int]] = field(
        default_factory=lambda: {"shared": (1 << 56, 1 << 32), "local": (2 << 56, 1 << 32)}
    )

    def __post_init__(self) -> None:
        if self.mask_stack and (self.pc_per_lane or not 0 < self.mask_stack <= 62):
            raise ValueError(f"a mask stack of {self.name} is for waves with one program counter, and has 62 entries at most")
