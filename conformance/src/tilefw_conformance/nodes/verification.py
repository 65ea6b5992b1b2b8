"""One program on nodes of one target: compile every launch, run it, compare; a verdict as a kernel of the library has.

Its stages are `lower` (all of the compiler), `simulate` and `compare`. A program may launch several times: each stage has the
time of all of its parts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tilefw.api.artifact import Artifact
from tilefw.api.capabilities import missing
from tilefw.api.device import JointDevice
from tilefw.api.errors import CapacityError, CheckError, InternalError, KernelError, UnsupportedError
from tilefw.distributed.node import DeviceNode, JointResult
from tilefw.distributed.rank_launch import RankLaunch
from tilefw.kernels.stages import STAGES
from tilefw.kernels.verify import StageVerdict, Verdict
from tilefw.passes.requirements import required
from tilefw.runtime import config
from tilefw.runtime.compilation import kernel_source, options
from tilefw.runtime.compilation.compiler import Compilation
from tilefw.runtime.executor import executor_for
from tilefw.runtime.jit import specialize
from tilefw.runtime.launchable import Launchable
from tilefw.runtime.plugins.loader import Target
from tilefw.tile.reference.accuracy import Comparison
from tilefw_conformance.nodes.program import NodeProgram

_CODE = "TFW0873"


class _Compiled(Exception):
    """The stage that was asked for is over."""


class NodeVerification:
    """A run of one program: what is known of it while its stages pass. `keywords` are launch keywords for every launch; `admit` is
    called with what each kernel needs before the target compiles it; `began` with each stage."""

    def __init__(
        self, program: NodeProgram, parameters: Mapping[str, Any], target: Target, *, seed: int, stop_after: str,
        keywords: Mapping[str, Any], admit: Callable[[frozenset[str]], None] | None, began: Callable[[str], None] | None,
        execution: Mapping[str, Any],
    ) -> None:
        self.program, self.parameters, self.target, self.seed = program, parameters, target, seed
        self.compiles_alone = STAGES.index(stop_after) < STAGES.index("simulate")
        self.compares = stop_after == "compare"
        self.keywords, self.admit, self.began, self.execution = keywords, admit, began, execution
        self.required = frozenset[str]()
        self.artifact: Artifact | None = None
        self.nodes: list[DeviceNode] = []
        self.seconds: dict[str, float] = {}
        self._known: set[tuple[Any, ...]] = set()
        self._stage, self._since = "", time.perf_counter()

    # --- what the program is given ------------------------------------------------------------------------------------------

    def node(self, ranks: int) -> DeviceNode:
        if self.execution.get("executor") == "hw":
            raise UnsupportedError("a node's devices are simulated", code=_CODE)
        self.nodes.append(_StagedNode(self, ranks))
        return self.nodes[-1]

    def makes(self, check: str) -> bool:
        device = executor_for(self.target, "default").device
        return isinstance(device, JointDevice) and check in device.joint_checks

    @contextmanager
    def checking(self, *checks: str) -> Iterator[None]:
        for check in checks:
            if not self.makes(check):
                raise UnsupportedError(f"{self.target.name} makes no check `{check}` of launches at once", code=_CODE)
        said = self.execution.get("checks") or "default"
        with config.target(checks=[*(said.split(",") if isinstance(said, str) else said), *checks]):
            yield

    # --- the run ------------------------------------------------------------------------------------------------------------

    def verdict(self) -> Verdict:
        settings = {name: self.execution.get(name) for name in ("checks", "budget", "numerics")}
        failed: tuple[str, KernelError | InternalError] | None = None
        comparisons: Mapping[str, Comparison] = {}
        self.enter("lower")
        try:
            with config.target(self.target.name, **settings):
                comparisons = self.program.run(self, self.parameters)
            self.enter("compare")
            self._refuse_wrong(comparisons if self.compares else {})
        except _Compiled:
            pass
        except (KernelError, InternalError) as error:
            failed = (_outcome(error), error)
        last = self._stage
        self._leave()
        stages = [StageVerdict(name, "pass", seconds) for name, seconds in self.seconds.items() if name != last]
        stages.append(StageVerdict(last, failed[0] if failed else "pass", self.seconds[last], failed[1] if failed else None))
        stages = [one for one in stages if self.compares or one.name != "compare"]
        return Verdict(
            self.program.info.name, self.target.name, "ref" if self.target.name == "reference" else "sim", self.parameters,
            self.seed, tuple(sorted(stages, key=lambda one: STAGES.index(one.name))), self.required, comparisons, self.artifact,
            self._counters(), tuple(failed[1].findings) if failed and isinstance(failed[1], CheckError) else (),
        )

    def enter(self, stage: str) -> None:
        """A stage begins, or goes on after another one."""
        self._leave()
        if stage != self._stage and self.began is not None:
            self.began(stage)
        self._stage = stage

    def _leave(self) -> None:
        now = time.perf_counter()
        if self._stage:
            self.seconds[self._stage] = self.seconds.get(self._stage, 0.0) + now - self._since
        self._since = now

    def look_at(self, function: Any, values: Sequence[Any]) -> None:
        """Find what a kernel needs of the target, once for each of its forms."""
        signature, constexprs, _ = specialize(function, dict(zip(function.arg_names, values, strict=True)))
        form = (function, *sorted(signature.items()), *sorted((name, str(value)) for name, value in constexprs.items()))
        if form not in self._known:
            self._known.add(form)
            work = Compilation(kernel_source.from_jit(function, signature, constexprs), self.target)
            self.required |= required(work.simplify(work.build(), options.resolve({}, self.target.info)))
        if self.admit is not None:
            self.admit(self.required)

    def _refuse_wrong(self, comparisons: Mapping[str, Comparison]) -> None:
        wrong = [name for name, one in comparisons.items() if one.wrong]
        if wrong:
            raise KernelError(
                f"{self.program.info.name} on {self.target.name}: {', '.join(wrong)} differs from what is due", code="TFW0630",
                note="\n".join(f"{name}: {comparisons[name]}" for name in wrong),
            )

    def _counters(self) -> dict[str, int]:
        total: dict[str, int] = {}
        for node in self.nodes:
            for result in node.results:
                for name, value in result.counters.items():
                    total[name] = total.get(name, 0) + value
        return total


class _StagedNode(DeviceNode):
    """A node whose compilations and launches are stages of a verification."""

    def __init__(self, verification: NodeVerification, ranks: int) -> None:
        super().__init__(verification.target.name, ranks)
        self._verification = verification

    def made(self, function: Any, values: Sequence[Any], extents: Any, options: Mapping[str, Any]) -> Launchable | None:
        run = self._verification
        run.enter("lower")
        run.look_at(function, values)
        made = super().made(function, values, extents, {**options, **run.keywords})
        run.artifact = run.artifact if made is None else made.compiled.artifact
        return made

    def execute(self, ready: Sequence[RankLaunch], seed: int) -> JointResult:
        if self._verification.compiles_alone:
            raise _Compiled
        self._verification.enter("simulate")
        return super().execute(ready, seed)


def _outcome(error: KernelError | InternalError) -> str:
    kinds = ((UnsupportedError, "unsupported"), (CapacityError, "over-capacity"), (InternalError, "error"))
    return next((outcome for kind, outcome in kinds if isinstance(error, kind)), "fail")


def without_node(verdict: Verdict, claimed: frozenset[str]) -> bool:
    """Whether the target makes no node, or not with the checks that the program is about; no claim says that it does."""
    failed = verdict.failed
    error = None if failed is None else failed.error
    return isinstance(error, KernelError) and error.code == _CODE and not missing(verdict.required, claimed)
