"""The target `reference`: its artifact is simplified tile IR as text, its device the reference interpreter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from tilefw.api.artifact import Artifact, Resources
from tilefw.api.backend import Backend, CompileOptions
from tilefw.api.checks import ALL_CHECKS
from tilefw.api.device import Argument, BufferView, Device, JointLaunch, LaunchOptions, LaunchReport, Scalar
from tilefw.api.dtypes import dtype as dtype_named
from tilefw.api.errors import LaunchError

if TYPE_CHECKING:
    import numpy as np
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.passes import ModulePass

    from tilefw.multicast_window import MulticastWindow
    from tilefw.tile.reference.value import EvaluatedValue


class ReferenceBackend(Backend):
    """Lowers nothing: what the tile passes leave is what runs."""

    scaled_dots = True

    def pipeline(self, options: CompileOptions) -> Sequence[ModulePass]:
        return ()

    def emit(self, module: ModuleOp, options: CompileOptions) -> Artifact:
        from xdsl.dialects import func

        from tilefw.tile.dialect.kernel_info import entry_of
        from tilefw.tile.text.module import with_locations

        functions = [op for op in module.body.block.ops if isinstance(op, func.FuncOp)]
        return Artifact(
            target=self.target.name,
            format="tile",
            text=with_locations(module),
            entries=tuple(entry_of(function) for function in functions),
            resources=Resources(unknown="the reference interpreter has no registers"),
            metadata={"enable_fp_fusion": options.enable_fp_fusion},
        )

    def parse(self, data: str | bytes, name: str) -> Artifact:
        """Tile IR text from a file."""
        from tilefw.tile.text.module import parse

        text = data if isinstance(data, str) else data.decode(errors="replace")
        return self.emit(parse(text, name), CompileOptions())

    def simulator(self) -> Device:
        return ReferenceDevice(self.target.name)


@dataclass(frozen=True, slots=True)
class _Loaded:
    artifact: Artifact
    module: ModuleOp


class ReferenceDevice:
    """The reference interpreter behind the device protocol."""

    executor: Literal["sim", "hw", "ref"] = "ref"
    assembled = False
    # A program of the reference has no waves, registers or banks, and waits for nothing.
    checks = ALL_CHECKS - {"pending", "hazards", "barriers", "leftovers", "bank_conflicts"}
    joint_checks = checks

    def __init__(self, name: str = "reference") -> None:
        from tilefw.tile.reference.memory import RefMemory

        self.name = name
        self.memory = RefMemory()

    def allocate(self, nbytes: int, *, label: str = "", readonly: bool = False, element: str = "") -> int:
        return self.memory.allocate(nbytes, label, readonly).handle

    def reaches(self, address: int) -> bool:
        """Whether memory that ends at `address` can be there."""
        return True

    def place(self, address: int, nbytes: int, *, label: str = "", readonly: bool = False, element: str = "") -> int:
        """As `allocate`, at `address`. Raises LaunchError (TFW0340)."""
        return self.memory.place(address, nbytes, label, readonly).handle

    def map_multicast(self, window: MulticastWindow | None) -> None:
        """From now on the node has this multicast mapping, or none."""
        self.memory.multicast = window

    def free(self, handle: int) -> None:
        self.memory.free(handle)

    def write(self, handle: int, data: Any, offset: int = 0) -> None:
        self._buffer(handle).write_bytes(memoryview(data).cast("B"), offset)

    def forget(self, handle: int, which: np.ndarray) -> None:
        """The bytes of an allocation where `which` is true count as never written."""
        self._buffer(handle).forget(which)

    def read(self, handle: int, nbytes: int, offset: int = 0) -> bytes:
        return self._buffer(handle).read_bytes(nbytes, offset)

    def read_reference(self, handle: int, element: str | None = None) -> EvaluatedValue:
        """Values, bounds and free mask of an allocation, as elements of the type called `element`."""
        return self._buffer(handle).read_reference(None if element is None else dtype_named(element))

    def load(self, artifact: Artifact) -> _Loaded:
        from tilefw.tile.text.module import parse

        return _Loaded(artifact, parse(artifact.text, artifact.metadata.get("source_name", "artifact")))

    def launch(
        self, module: _Loaded, entry: str, grid: Sequence[int], args: Sequence[Argument], options: LaunchOptions
    ) -> LaunchReport:
        from tilefw.tile.reference.interpret import run

        for buffer in self.memory.buffers.values():  # what an earlier launch left
            buffer.settle()
        report = run(
            module.module, entry, grid, [self._argument(a) for a in args], memory=self.memory,
            fusion=bool(module.artifact.metadata.get("enable_fp_fusion", True)), budget=options.budget, checks=options.checks,
        )
        return LaunchReport(report.findings, report.counters, report.seconds)

    def launch_jointly(self, launches: Sequence[JointLaunch], seed: int) -> Sequence[LaunchReport]:
        """As `JointDevice.launch_jointly`."""
        from tilefw.tile.reference.interpret import find_entry
        from tilefw.tile.reference.joint import JointRun, run_jointly

        for buffer in self.memory.buffers.values():
            buffer.settle()
        made = []
        for one in launches:
            arguments = [self._argument(a) for a in one.args]
            run = JointRun(
                find_entry(one.module.module, one.entry), tuple(one.grid), arguments, self.memory,
                bool(one.module.artifact.metadata.get("enable_fp_fusion", True)), one.options.budget, one.options.checks,
            )
            run.title, run.rank, run.resident = f"{one.name} on rank {one.rank}", one.rank, one.options.resident
            made.append(run)
        return [LaunchReport(r.findings, r.counters, r.seconds) for r in run_jointly(made, seed)]

    def memory_info(self) -> Mapping[str, int]:
        buffers = self.memory.buffers.values()
        return {"allocations": len(buffers), "allocated_bytes": sum(b.nbytes for b in buffers)}

    def _buffer(self, handle: int):
        found = self.memory.buffers.get(handle)
        if found is None:
            raise LaunchError(f"handle {handle} names no allocation of {self.name}", "TFW0440")
        return found

    def _argument(self, argument: Argument) -> Any:
        from tilefw.tile.reference.interpret import RefPointer

        match argument:
            case BufferView(handle=0):
                return argument.offset
            case BufferView():
                return RefPointer(self._buffer(argument.handle), argument.offset)
            case Scalar():
                return argument.value
