"""Triton stays as it is, front end to machine code, and tilefw is its device: the code that a card would run, under every check.

    import tilefw.triton; tilefw.triton.sanitize("NAME")     # or: tilefw run program.py --compiler triton --target NAME

Triton finds its device by its active driver. Ours names the chosen chip, loads what Triton compiled for it into the target's
simulator, and launches it there. A finding is raised where the kernel was launched. Every check that finds faults is made, unless
the user says which: those of the device, and that nobody reads what `torch.empty` left in a tensor.
"""

from __future__ import annotations

import functools
import importlib
import math
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import tilefw
from tilefw.api.checks import ALL_CHECKS
from tilefw.api.device import Finding, Scalar
from tilefw.api.errors import CheckError, UnsupportedError, UsageError
from tilefw.api.target import TritonNames
from tilefw.runtime import config
from tilefw.runtime.checks.program_checks import UNINITIALISED
from tilefw.runtime.compiled_kernel import registers_of
from tilefw.triton import chip, testing
from tilefw.triton.driver import ActiveDevice, DeviceUtilities
from tilefw.triton.importing import installed, wait_for_torch

# Triton passes two pointers behind the user's: to scratch memory of the launch, and of its profiler. Both are null.
_SCRATCH_POINTERS = 2
CHECKS = (ALL_CHECKS - {"bank_conflicts"}) | {UNINITIALISED}  # which only counts
_REPLICA = "race on shared memory: this store is not ordered with a write of another wave"
_FLOATS = ("fp16", "bf16", "fp32", "fp64")


def sanitize(target: str | None = None) -> None:
    """Make tilefw the device of Triton's programs, on `target` (a name, or Triton's `backend:arch`) or the current one.

    Raises UsageError TFW0919 where Triton is absent, where tilefw stands in its place, and for a target that Triton has no compiler
    for.
    """
    if installed():
        raise UsageError("tilefw stands in Triton's place already", code="TFW0919", help="call tilefw.triton.uninstall() first")
    if target is not None:
        tilefw.set_target(chip.named(target))
    if not config.checks_said():
        tilefw.set_target(chip.target_info().name, checks=CHECKS)
    names = _names()
    try:
        triton = importlib.import_module("triton")
    except ImportError:
        raise UsageError("Triton is not installed", code="TFW0919", help="pip install triton==3.9.0") from None
    wait_for_torch()
    triton.runtime.driver.set_active(_driver(triton))
    triton.knobs.runtime.add_stages_inspection_hook = StagesHook(names)
    _measure_nothing(triton)


def _measure_nothing(triton: Any) -> None:
    """In the place of what measures a card, and of the vendor's matrix library, which needs one: tilefw's own."""
    from tilefw.triton import host_blas, profiler

    _tune_nothing(triton.runtime.autotuner.Autotuner)
    triton.testing.Mark.run, triton.testing.do_bench = testing.Mark.run, testing.do_bench
    triton.profiler = sys.modules["triton.profiler"] = profiler
    sys.modules["triton.profiler.viewer"] = profiler.viewer
    compiled = importlib.import_module("triton._C.libtriton")
    compiled.nvidia.cublas, compiled.amd.hipblas = host_blas.CUBLAS, host_blas.HIPBLAS


def _tune_nothing(autotuner: Any) -> None:
    """An autotuner takes its first configuration that the chip can run: a simulator's seconds do not tell which one is the best."""
    prune, bench = autotuner.prune_configs, autotuner._bench
    if hasattr(bench, "__wrapped__"):
        return

    def prune_configs(self: Any, kwargs: Any) -> Any:
        self._tilefw_has_run = False
        return prune(self, kwargs)

    @functools.wraps(bench)
    def of_one(self: Any, *args: Any, config: Any, **meta: Any) -> Any:
        if getattr(self, "_tilefw_has_run", False):
            return [math.inf] * 3
        found = bench(self, *args, config=config, **meta)
        self._tilefw_has_run = found[0] < math.inf
        return found

    autotuner.prune_configs, autotuner._bench = prune_configs, of_one


def _names() -> TritonNames:
    info = chip.target_info()
    if info.triton is None:
        raise UsageError(f"Triton compiles nothing for {info.name}", code="TFW0919", help="choose a GPU among `tilefw targets`")
    return info.triton


class StagesHook:
    """Triton's hook into the stages of its compiler: where a simulator reads assembly, the last stage hands that on."""

    def __init__(self, names: TritonNames) -> None:
        self._names = names

    def __call__(self, backend: Any = None, stages: Any = None, *rest: Any) -> tuple[str, str] | None:
        if stages is None:  # asked for what its own cache is to be told apart by
            return f"tilefw-{self._names.loads}", f"tilefw-{self._names.loads}"
        if self._names.loads == self._names.text and self._names.binary in stages:
            stages[self._names.binary] = lambda source, metadata: source.encode()
        return None


def _driver(triton: Any) -> Any:
    """An active driver of Triton's, of a class made here because its base is Triton's."""
    base = triton.backends.driver.DriverBase
    targets = triton.backends.compiler

    class SimulatedDriver(ActiveDevice, base):
        launcher_cls = SimulatedLauncher
        utils = SimulatedUtilities()

        def get_current_target(self) -> Any:
            found = chip.current_target()
            return targets.GPUTarget(found.backend, found.arch, found.warp_size)

    return SimulatedDriver()


class SimulatedUtilities(DeviceUtilities):
    """`driver.active.utils` of a simulator: modules are loaded into it."""

    def load_binary(self, name: str, kernel: bytes, shared: int, device: int) -> tuple[Any, Any, int, int, int]:
        """The module, its entry, and its registers, spills and most threads as far as they are known."""
        module = tilefw.load(kernel, chip.target_info().name, f"Triton's code of {name}")
        spills = module.artifact.resources.spills or 0
        return module, module[name], registers_of(module.artifact), spills, chip.limits()["threads_per_workgroup"]

    def unload_module(self, module: Any) -> None:
        """Nothing is held outside of Python."""


class SimulatedLauncher:
    """Launches one compiled kernel: Triton makes one for each."""

    def __init__(self, src: Any, metadata: Any) -> None:
        if getattr(metadata, "global_scratch_size", 0) or getattr(metadata, "profile_scratch_size", 0):
            raise UnsupportedError(f"kernel {metadata.name} asks for scratch memory of Triton's runtime", "TFW0103")
        self._types = tuple(src.signature.values())
        self._block = (metadata.num_warps * chip.current_target().warp_size, 1, 1)
        self._shared: int = metadata.shared

    def __call__(
        self, x: int, y: int, z: int, stream: Any, function: Any, packed: Any, launch_metadata: Any, enter: Any, leave: Any,
        *args: Any,
    ) -> None:
        if enter is not None:
            enter(launch_metadata)
        passed = [*_passed(self._types, args), *[None] * _SCRATCH_POINTERS]
        self._launch(function, (x, y, z), passed)
        if leave is not None:
            leave(launch_metadata)

    def _launch(self, function: Any, grid: tuple[int, int, int], passed: Sequence[Any]) -> None:
        """A launch in which only replicas raced is made again without the check of races, as nothing was copied back: no other pair
        of accesses races in it (a finding is one pair)."""
        words = {"block": self._block, "dynamic_shared": self._shared}
        try:
            function.launch(grid, passed, **words)
        except CheckError as error:
            if not all(is_replica(finding) for finding in error.findings if finding.severity == "error"):
                raise
            function.launch(grid, passed, **words, checks=config.resolve().checks - {"races"})


def is_replica(finding: Finding) -> bool:
    """Whether it is a race of one store with itself in shared memory, which Triton's code has by design.

    Where a layout gives one element to several waves, each of them stores what it has computed of it. After a reduction by
    butterfly exchanges these values differ in rounding, as lanes combine their parts in different orders. Any of them is right, and
    no change of the kernel would help.
    """
    return (
        finding.check == "races" and finding.message == _REPLICA and finding.other is not None
        and finding.other.startswith(f"`{finding.instruction}` ({finding.code_place}) by ")
    )


def _passed(types: Sequence[Any], values: Sequence[Any]) -> Iterator[Any]:
    """What the machine code takes of the arguments: tuples item by item, a descriptor in its parts, no constexpr."""
    for kind, value in zip(types, values, strict=True):
        if isinstance(kind, tuple):
            yield from _passed(kind, value)
        elif kind.startswith("tensordesc"):
            yield from (value.base, *value.shape, *value.strides, value.padding == "nan", value.round_f32_to_tf32)
            yield from (*value.shape, *value.strides)
        elif kind != "constexpr":
            yield _word(kind, value)


def _word(kind: str, value: Any) -> Any:
    """One argument; a float with its type, since not all machine code says that a parameter is one."""
    if kind in _FLOATS:
        return Scalar(value, kind)
    return getattr(value, "base", value) if type(value).__name__ == "TensorWrapper" else value
