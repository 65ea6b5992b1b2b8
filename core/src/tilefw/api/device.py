"""The runtime ABI: one protocol for simulators and hardware, and what a launch gives back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from tilefw.api.artifact import Artifact
from tilefw.api.checks import ALL_CHECKS, CHECKS, DEFAULT_CHECKS
from tilefw.api.errors import Place
from tilefw.api.execution_trace import ExecutionTrace
from tilefw.api.timeline import Timeline, Utilisation

DEFAULT_BUDGET = 2_000_000_000  # executed instructions, summed over threads (lanes) of the launch


__all__ = [
    "ALL_CHECKS", "CHECKS", "DEFAULT_BUDGET", "DEFAULT_CHECKS", "Argument", "ArrayDescriptor", "BufferView", "Completion",
    "DescribedArray", "Device", "DeviceAddress", "Finding", "JointDevice", "JointLaunch", "LaunchOptions", "LaunchReport",
    "Requirement", "Scalar", "Struct",
]


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault that a check saw, reported once a site: `count` says how often it happened there.

    `instruction` is the machine instruction as text, `code_place` its position in the machine code, `source` the
    user's own line when the code carries line information. `other` describes the second side of a race.
    """

    check: str
    code: str
    message: str
    instruction: str = ""
    code_place: Place | None = None
    source: Place | None = None
    workgroup: tuple[int, int, int] | None = None
    wave: int | None = None
    lane: int | None = None
    address: int | None = None
    count: int = 1
    note: str | None = None
    other: str | None = None
    severity: Literal["error", "warning"] = "error"


@dataclass(frozen=True, slots=True)
class BufferView:
    """A pointer argument: a device allocation's handle and a byte offset into it. Handle 0 is the null pointer."""

    handle: int
    offset: int = 0


@dataclass(frozen=True, slots=True)
class DeviceAddress:
    """A pointer argument into memory that another library has allocated on the device: the address itself, as its driver gave
    it."""

    value: int


@dataclass(frozen=True, slots=True)
class Scalar:
    """A scalar argument: a Python number and its element type's name (`int32`, `fp32`)."""

    value: int | float
    dtype: str


@dataclass(frozen=True, slots=True)
class Struct:
    """A struct passed by value: as many bytes as its parameter has, in the layout that the machine code expects."""

    data: bytes


@dataclass(frozen=True, slots=True)
class ArrayDescriptor:
    """What a copy engine is told of an array: made by the device of the other arguments, as the words of `Parameter.hidden` say."""

    words: str


@dataclass(frozen=True, slots=True)
class DescribedArray:
    """An array by numbers, innermost dim first: where it begins, its `sizes`, `strides` in bytes of all dims but the innermost, the
    `extents` of the blocks that are copied, its element's name; the bytes of a row in shared memory whose pieces are exchanged, 0
    where none are."""

    base: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    extents: tuple[int, ...]
    element: str
    row_bytes: int


Argument = BufferView | DeviceAddress | Scalar | Struct | ArrayDescriptor
"""One argument of a launch."""


@dataclass(frozen=True, slots=True)
class LaunchOptions:
    """How to execute: which checks, how many instructions at most, whose matrix numerics, and which adversarial order.

    `seed` 0 is the plain order; any other permutes the order of workgroups and waves and the completion of
    asynchronous work, reproducibly. `timeline` asks for `LaunchReport.timeline`, of a target that provides it. `observers` are
    the classes of the checks that plugins have registered, each as `"module:attribute"`. `stream` is the handle of the stream that
    an asynchronous device launches on, as its driver gave it; 0 or None is the driver's default stream. `programs` are the numbers
    of those programs of the grid that run (x + X·(y + Y·z) for a grid of X × Y × Z), for a device that `samples`; None are all. A
    chip has no use for checks, budget, numerics, seed, observers and programs. `trace` asks for `LaunchReport.trace`, of a device
    that `traces`; with `beginning` above 0 it is what workgroups begin with: after about so many blocks of code they are left as
    they are. `resident` is how many workgroups are in flight at most, for a device that simulates.
    """

    block: tuple[int, int, int] | None = None
    dynamic_shared: int | None = None
    checks: frozenset[str] = DEFAULT_CHECKS
    budget: int = DEFAULT_BUDGET
    numerics: Literal["ieee", "hw"] = "ieee"
    seed: int = 0
    timeline: bool = False
    observers: tuple[str, ...] = ()
    stream: int | None = None
    programs: tuple[int, ...] | None = None
    trace: bool = False
    beginning: int = 0
    resident: int | None = None


class Completion(Protocol):
    """A launch that may still run: who waits for it learns how long the device took."""

    def done(self) -> bool:
        """Whether the launch has ended, well or not; does not wait."""
        ...

    def wait(self) -> float:
        """Wait for the end; the seconds that the launch took by the device's own clock. Raises LaunchError where it failed."""
        ...


@dataclass(slots=True)  # frozen, it takes four times as long to make, and every launch makes one
class LaunchReport:
    """What one launch did: findings of checks, counters by name, and seconds spent in the executor; for an executor that knows
    cycles, how far each resource of the chip was used and, where it was asked for, what happened when. `completion` is there where
    the launch may still run; its seconds then replace `seconds`. `trace` is what waves executed, where that was asked for."""

    findings: tuple[Finding, ...] = ()
    counters: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    utilisation: tuple[Utilisation, ...] = ()
    timeline: Timeline | None = None
    completion: Completion | None = None
    trace: ExecutionTrace | None = None

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that make a launch wrong; the others are warnings."""
        return tuple(f for f in self.findings if f.severity == "error")


@dataclass(frozen=True, slots=True)
class Requirement:
    """One thing that a chip's executor needs of the machine: what, whether it is met, and what was found or is missing."""

    subject: str
    met: bool
    text: str


class Device(Protocol):
    """A place where artifacts run: a simulator, the reference interpreter, or the chip.

    Handles are opaque positive integers. `load` may raise CodeError; `launch` raises LaunchError when the arguments
    do not fit the entry, and returns findings rather than raising them. Everything is complete on return, unless the
    device is `asynchronous`: then `launch` gives a `LaunchReport.completion`, and `read` and `write` come behind the launches
    before them. Such a device (`tilefw.api.hardware.Card`) has streams, events and peers, and takes a `DeviceAddress`.

    `checks` are the names of the checks that it makes: `--checks all` means all of these, and a launch that asks by name for
    another is refused before it runs. A device that makes none has an empty set, and its launches are reported as unchecked. A
    device whose checks cost more than users want to pay unasked says in `unasked_checks` which it makes where nobody names any, or
    `default` (without, all that are of the default ones). A device with a true `observable`, as the simulators of the kit have,
    makes the checks of plugins as well (`LaunchOptions.observers`). One with a true `samples`, as those simulators have too, runs
    some programs of a grid alone where a launch asks for it (`LaunchOptions.programs`). One with a true `traces` writes down what
    its waves execute (`LaunchOptions.trace`).
    """

    name: str

    @property
    def checks(self) -> frozenset[str]:
        """The checks that it makes."""
        ...

    @property
    def executor(self) -> Literal["sim", "hw", "ref"]:
        """Whether it simulates, is the chip itself, or interprets."""
        ...

    @property
    def assembled(self) -> bool:
        """Whether it loads an artifact's assembled bytes rather than its text."""
        ...

    def allocate(self, nbytes: int, *, label: str = "", readonly: bool = False, element: str = "") -> int:
        """A new allocation of `nbytes`; its bytes are uninitialised. `element` names the dtype, for reports."""
        ...

    def free(self, handle: int) -> None:
        """End an allocation; its handle means nothing from then on."""
        ...

    def write(self, handle: int, data: Any, offset: int = 0) -> None:
        """Copy `data` (anything with the buffer protocol, C-contiguous) in at `offset` bytes; marks it initialised."""
        ...

    def read(self, handle: int, nbytes: int, offset: int = 0) -> bytes:
        """Copy `nbytes` bytes out, from `offset` bytes on."""
        ...

    def load(self, artifact: Artifact) -> Any:
        """Prepare an artifact; what comes back is passed to `launch`."""
        ...

    def launch(
        self, module: Any, entry: str, grid: Sequence[int], args: Sequence[Argument], options: LaunchOptions
    ) -> LaunchReport:
        """Run `entry` of a loaded `module` over `grid`, with `args` in the order of its parameters."""
        ...

    def memory_info(self) -> Mapping[str, int]:
        """What is allocated now: `allocations`, and bytes where the device counts them."""
        ...


@dataclass(frozen=True, slots=True)
class JointLaunch:
    """One of several launches at once in the memory of one device, which stands for all devices of a node: the rank of the one that
    it runs on, its kernel's `name` for messages, and the arguments of `Device.launch`."""

    rank: int
    name: str
    module: Any
    entry: str
    grid: Sequence[int]
    args: Sequence[Argument]
    options: LaunchOptions


@runtime_checkable
class JointDevice(Protocol):
    """A device that runs several launches by turns, each of which may wait for what another one writes."""

    @property
    def joint_checks(self) -> frozenset[str]:
        """Those of its checks that it makes of launches at once."""
        ...

    def launch_jointly(self, launches: Sequence[JointLaunch], seed: int) -> Sequence[LaunchReport]:
        """Run all launches to their ends, in an order that `seed` draws, fair to each; their reports in their order.

        One whose checks find an error ends the others. Where no launch can go on, each has a finding of the check `deadlock` for
        each word that it waits for: its address and, as the note, its value. Raises as `Device.launch`."""
        ...
