"""What the simulator asks of machine code: a program of decoded instructions, each with its meaning, operands and flow.

An instruction set decodes its text or bytes to `Instruction`s; the kit knows nothing else of it. Everything that costs
time is done once, at decode: operands are resolved to register numbers and constants, and `meaning` is the row's
function for exactly these modifiers (a closure or a `functools.partial`), called with the source values in order:

    meaning(lanes, *sources) -> None | Value | tuple[Value, ...]

`lanes` is a `tilefw.sim.algebra.Algebra`. One result stands for each destination, in order. The guard is *not* the
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
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from tilefw.api.errors import Place

if TYPE_CHECKING:
    from tilefw.sim.algebra import Algebra, Value


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
Destination = Register | Registers | Sink


@dataclass(frozen=True, slots=True)
class Guard:
    """The instruction acts only in lanes where the predicate is true (false when `negated`)."""

    register: Register
    negated: bool = False


# --- where execution goes next; an instruction without flow falls through to index + 1 -------------------------------


@dataclass(frozen=True, slots=True)
class Branch:
    """Lanes where the guard holds (all lanes without a guard) go to instruction `target`, others fall through.
    `uniform`: the code promises that all active lanes of a wave agree (a broken promise is a finding)."""

    target: int
    uniform: bool = False


@dataclass(frozen=True, slots=True)
class BranchTable:
    """A lane goes to `targets[value of source 0]`; an index outside is a fault."""

    targets: tuple[int, ...]


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
    threads take part, then, when `reduce`, a predicate. `scope` "workgroup": threads of the workgroup, all unless counted;
    "wave": lanes of the wave named by source 0, a mask of members.

    `action` "sync" waits; "arrive" counts and goes on. `aligned`: all lanes of a wave must arrive together.
    A `reduce` barrier gives its one destination the "popc" (32 bits), "and" or "or" (1 bit) over the participants.
    """

    scope: Literal["workgroup", "wave"] = "workgroup"
    action: Literal["sync", "arrive"] = "sync"
    counted: bool = False
    aligned: bool = True
    reduce: Literal["popc", "and", "or"] | None = None


Flow = Branch | BranchTable | Call | Return | Exit | Barrier


@dataclass(frozen=True, slots=True)
class Instruction:
    """One decoded instruction. `index` is its place in `Program.instructions`, which is its program counter.

    `text` is the instruction as written, `mnemonic` its full opcode, `unit` the pipe that counters go by. `code` is its
    place in the machine code, `source` the user's own line where line information says so. With a `flow`, `meaning` is
    None. `row` is whatever the instruction set wants to find again (its table row); the kit hands it on untouched.
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


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of the program: `space` is "global", "const", "shared" or "local"; `data` its initial bytes, None for none.

    A shared variable with `size` 0 is the workgroup's dynamic shared memory, placed behind all others.
    """

    name: str
    space: Literal["global", "const", "shared", "local"]
    size: int
    alignment: int = 1
    data: bytes | None = None
    code: Place | None = None


@dataclass(frozen=True, slots=True)
class ProgramParameter:
    """A parameter of the entry: bytes [offset, offset + size) of the argument block."""

    name: str
    offset: int
    size: int
    alignment: int
    pointer: bool = False


@dataclass(frozen=True, slots=True)
class Program:
    """One entry, decoded. `registers` are the widths in bits by register number, `register_names` as the code spells them.

    Shared and local variables get addresses in order, each at its alignment; `Symbol`s refer to variables and
    parameters by name. `required_workgroup` is the only block size that the code allows, `max_workgroup` the most
    threads. Instructions of functions that the entry calls stand behind its own.
    """

    name: str
    instructions: Sequence[Instruction]
    registers: Sequence[int]
    register_names: Sequence[str] = ()
    parameters: tuple[ProgramParameter, ...] = ()
    variables: tuple[Variable, ...] = ()
    required_workgroup: tuple[int, int, int] | None = None
    max_workgroup: int | None = None


@dataclass(frozen=True, slots=True)
class Chip:
    """What the engine must know of a chip beyond its instructions.

    `pc_per_lane`: lanes of a wave may stand at different instructions, rejoining at the lowest (else a branch takes the
    whole wave and its condition must be uniform; masks are then the code's business). `windows` are the address
    ranges in which generic addresses mean another space. `resident_workgroups` may wait for one another. `shared_banks` are
    banks of 4 bytes.
    """

    name: str
    wave_size: int = 32
    pc_per_lane: bool = True
    max_threads: int = 1024
    max_grid: tuple[int, int, int] = (2**31 - 1, 65535, 65535)
    shared_bytes: int = 48 * 1024
    local_bytes: int = 512 * 1024
    resident_workgroups: int = 1024
    shared_banks: int = 32
    windows: Mapping[str, tuple[int, int]] = field(
        default_factory=lambda: {"shared": (1 << 56, 1 << 32), "local": (2 << 56, 1 << 32)}
    )
