"""The class that a plugin implements: capabilities, lowering passes in order, emission, assembly, execution."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from tilefw.api.artifact import Artifact
from tilefw.api.cost import CostRates, LaunchSequence
from tilefw.api.device import Device, Requirement
from tilefw.api.errors import CapacityError, UnsupportedError
from tilefw.api.launch import LaunchArguments
from tilefw.api.linking import ChainLaunch, LinkedArtifact
from tilefw.api.target import TargetInfo

if TYPE_CHECKING:
    from tilefw.api.ir import DotScaledOp, ModuleOp, ModulePass
    from tilefw.api.timing import ChipFigures, ChipTiming
    from tilefw.simt.description import LaneMachine


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """The launch keywords that shape code, resolved against the target's defaults; `extra` holds target options.

    `facts` are what the launch knows of the arguments beyond their types ("disjoint", …). `launch` is there for a target that wants
    the facts `scalars`, `grid` or `extents`, unless nobody said what will be launched. `verify`: machine passes run their
    independent checkers (TILEFW_VERIFY=1), which costs compile time. `most_stages` caps the stages of each pipelined loop, its
    author's own wish too, where shared memory does not hold them.
    """

    num_warps: int = 4
    num_stages: int = 3
    num_ctas: int = 1
    maxnreg: int | None = None
    enable_fp_fusion: bool = True
    debug: bool = False
    facts: frozenset[str] = frozenset()
    launch: LaunchArguments | None = None
    keep_levels: bool = False
    verify: bool = False
    most_stages: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


class Backend(ABC):
    """One target's compiler and executors. Construction is cheap; heavy imports belong inside the methods."""

    binary_suffix: ClassVar[str] = ".bin"
    """How the name of a file that `to_binary` makes ends."""
    program_steps: ClassVar[tuple[tuple[str, str], ...]] = (("emit", "Writes the artifact."), ("assemble", "Adds the binary."))
    """The steps behind `pipeline`, by name with a sentence each, for listings: what `emit` and `assemble` do."""
    scaled_dots: ClassVar[bool] = False
    """Whether the backend lowers `DotScaledOp`. Where it does not, the default passes write it as products without scales."""
    links: ClassVar[bool] = False
    """Whether `link` makes artifacts: a target that compiles for one launch (the facts `scalars`, `grid`, `extents`) may."""
    cost_rates: ClassVar[CostRates] = CostRates()
    """By which `launch_cost` weighs work; of the chip's published numbers, where a backend has them."""
    toolchain_variables: ClassVar[tuple[str, ...]] = ("PATH",)
    """The environment variables by which outside tools are found: when one changes, `toolchain_digest` is asked again."""

    def __init__(self, target: TargetInfo) -> None:
        self.target = target

    @property
    def capabilities(self) -> frozenset[str]:
        """What is served, natively or by expansion."""
        return self.target.capabilities

    def takes_scaled_dot(self, op: DotScaledOp, options: CompileOptions) -> bool:
        """Whether the backend lowers this product with scales under these options; all or none (`scaled_dots`) where a backend does
        not say."""
        return self.scaled_dots

    @abstractmethod
    def pipeline(self, options: CompileOptions) -> Sequence[ModulePass]:
        """The lowering passes from simplified tile IR to what `emit` takes, in order."""

    def with_less_memory(self, module: ModuleOp, options: CompileOptions, error: CapacityError) -> CompileOptions | None:
        """Options under which lowering may do with what the chip has, after `error` under these; None where there are none, and the
        error is the user's. `module` is the simplified one, to be lowered again."""
        return None

    @abstractmethod
    def emit(self, module: ModuleOp, options: CompileOptions) -> Artifact:
        """Lowered IR to an artifact."""

    def assemble(self, artifact: Artifact, options: CompileOptions) -> Artifact:
        """Add `binary` and `resources`, where an assembler is at hand; the artifact unchanged where none is."""
        return artifact

    def link(self, launches: Sequence[ChainLaunch], options: CompileOptions) -> LinkedArtifact | None:
        """As many of successive launches as go into one artifact, from the first on, assembled; None where the first two do not.
        What only launches of one artifact use need not reach memory. Modules stay as they are: another link may be offered them."""
        return None

    def launch_cost(self, launches: LaunchSequence) -> float:
        """What successive launches cost, in a unit of the backend's own: of two ways to launch the same part of a model, core takes
        the one of the lower cost. A CompileError says that this way is none."""
        return self.cost_rates.cost(launches.work)

    def assembly(self, artifact: Artifact) -> str:
        """The assembly text of an artifact: its text, unless that is in another tool's language, from which the code is made."""
        return artifact.text

    def parse(self, data: str | bytes, name: str) -> Artifact:
        """Machine code that tilefw did not make, as an artifact; `name` is the file's, for messages."""
        raise UnsupportedError(f"{self.target.name} does not load machine code from files", code="TFW0701")

    def to_binary(self, text: str, name: str) -> bytes:
        """Assembly text as a file that a driver or the simulator loads, for a target whose encoding the plugin knows."""
        raise UnsupportedError(f"{self.target.name} has no assembler of its own", code="TFW0603")

    def to_text(self, data: bytes, name: str) -> str:
        """A file of machine code as assembly text that `to_binary` makes the same code of."""
        raise UnsupportedError(f"{self.target.name} has no disassembler of its own", code="TFW0603")

    def simulator(self) -> Device:
        """A fresh simulator of the chip."""
        raise UnsupportedError(f"{self.target.name} has no simulator", code="TFW0601")

    def device(self, number: int | None = None) -> Device:
        """The chip itself, where a driver is at hand: the card of that number, or the first one with the target's chip. Raises
        UnsupportedError where there is none, or where it is another chip's."""
        raise UnsupportedError(f"{self.target.name} has no hardware executor", code="TFW0602")

    def device_requirements(self) -> Sequence[Requirement]:
        """What `device` needs of this machine, in the order in which it looks for it, for `tilefw doctor`; empty for a target
        without a hardware executor."""
        return ()

    def timing(self, figures: ChipFigures | None = None) -> ChipTiming:
        """The chip as the model of time sees it, by `figures` instead of the chip's own file where they are given. Raises
        UnsupportedError where the plugin has no such file."""
        raise UnsupportedError(f"{self.target.name} has no model of time", code="TFW0666")

    def lane_machine(self, options: CompileOptions) -> LaneMachine | None:
        """The chip with the waves of a program under these options, as layouts see it, for estimates; None for a chip without
        lanes."""
        return None

    def toolchain_digest(self) -> str:
        """The versions of the outside tools that change the output, as text: a part of the cache key. It is asked once a process,
        and again after one of `toolchain_variables` has changed."""
        return ""
