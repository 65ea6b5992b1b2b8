"""What launches one kernel: it keeps what was decided at earlier launches, and asks only whether that may have changed since.

A launch is found by its keywords, which give its site (launch_site.py), and there by the types and constants of its arguments
(known_launches.py).
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from tilefw.api.artifact import Artifact
from tilefw.api.device import DEFAULT_BUDGET, Finding
from tilefw.api.launch import LaunchArguments
from tilefw.api.target import BOUND_FACTS
from tilefw.runtime import specialization_data
from tilefw.runtime.arguments.array_facts import facts_of_storages, facts_that_hold
from tilefw.runtime.arguments.arrays import ARRAYS, HostArray
from tilefw.runtime.arguments.binding import grid_of
from tilefw.runtime.arguments.bound_launch import launch_of
from tilefw.runtime.arguments.kernel_parameter import KernelParameter
from tilefw.runtime.arguments.single_pass import Readings
from tilefw.runtime.arguments.specialization import read, specialize
from tilefw.runtime.checks.program_checks import check_program
from tilefw.runtime.compiled_kernel import WarmKernel
from tilefw.runtime.direct_launches import DirectLaunches
from tilefw.runtime.known_launches import KnownLaunch, MadeLaunch, made_known
from tilefw.runtime.launch import LaunchResult, run_at
from tilefw.runtime.launch_site import LIMIT, LaunchSite, LaunchSites, keep
from tilefw.runtime.launchable import Launchable
from tilefw.runtime.residence import RESIDENCE

if TYPE_CHECKING:
    from tilefw.runtime.estimates import Estimates
    from tilefw.timing.estimate.estimated_time import Estimate

Grid = Any  # one to three extents, or what gives them for the arguments by name


class LaunchedKernel(Protocol):
    """What is asked of a jit function (jit.py). `debug_build` is the same kernel with its assertions."""

    params: list[KernelParameter]
    arg_names: list[str]
    debug: bool
    __qualname__: str
    device_caches: defaultdict[int, tuple[dict[Any, Any], ...]]

    @property
    def debug_build(self) -> Any: ...
    def run(self, *args: Any, grid: Any, **keywords: Any) -> Any: ...


class Launcher:
    """`kernel[grid](…)`, with the arguments in the order of the parameters and the keywords that are none of them."""

    __slots__ = ("direct", "kernel", "known", "readings", "sites")

    def __init__(self, kernel: LaunchedKernel) -> None:
        self.kernel = kernel
        self.sites = LaunchSites()
        self.known: dict[Hashable, KnownLaunch] = {}
        self.readings = Readings(kernel.params, LIMIT)
        self.direct = DirectLaunches(self.readings)

    def launch(self, given: Sequence[Any], grid: Grid, keywords: Mapping[str, Any]) -> LaunchResult | None:
        """Run the kernel over `grid` programs, writing the arrays in place; None where a hook has taken the launch over.

        Raises LaunchError for arguments or keywords that do not fit, CompileError for the kernel, CheckError when a check found a
        fault (then nothing is copied back)."""
        extents = self.extents(grid, given)  # before the arguments are read, which the user's function may change
        site = self.sites.find(keywords)
        if site.debug and not self.kernel.debug:
            return self.kernel.debug_build.launcher.launch(given, extents, keywords)
        form = None if specialization_data.hook() is not None or not all(extents) else site.form
        warm = self._warm_kernels()
        done = None if form is None else self.direct.launch(site, form, self.sites.process, given, extents, warm)
        if done is not None:
            return done
        known, values = self._known(site, given)
        made = self._made(known, given, _bound(known, values, extents), keywords, warm=False)
        if made is None:
            return None
        args = made.arguments.bind(values)
        warnings = _checked(known, extents, values) if site.of_program else ()
        result = run_at(site, made.compiled, made.arguments.entry, extents, args, known.source.name, warnings, made.prints)
        result.launched = self._launched(known, made.compiled.artifact, keywords, given)
        if form is not None:
            self.direct.learn(site, form, self.sites.process, known, made, given, result.launched)
        return result

    def ready(self, given: Sequence[Any], grid: Grid, keywords: Mapping[str, Any]) -> Launchable | None:
        """What `launch` would run, ready to be run by somebody else; None where a hook has taken the compilation over."""
        extents = self.extents(grid, given)  # before the arguments are read, which the user's function may change
        site = self.sites.find(keywords)
        if site.debug and not self.kernel.debug:
            return self.kernel.debug_build.launcher.ready(given, extents, keywords)
        known, values = self._known(site, given)
        made = self._made(known, given, _bound(known, values, extents), keywords, warm=False)
        if made is None:
            return None
        args = made.arguments.bind(values)
        return Launchable(known.source.name, site.target, site.resolved, made.compiled, made.arguments.entry, extents, args)

    def estimate(
        self, given: Sequence[Any], grid: Grid, keywords: Mapping[str, Any], known: dict[str, Estimates]
    ) -> Estimate | None:
        """What `launch` would take on the chip that a simulator is of; None on a card, and where the target has no estimates."""
        from tilefw.runtime.estimates import Estimates, has_estimates

        extents, site = self.extents(grid, given), self.sites.find(keywords)
        if site.executor.device.executor != "sim" or not has_estimates(site.target):
            return None
        launch, values = self._known(site, given)
        estimates = known.setdefault(site.target.name, Estimates(site.target))
        return estimates.of(launch.source, launch.request, launch.by_name(values), extents)

    def warm_up(self, given: Sequence[Any], grid: Grid, keywords: Mapping[str, Any]) -> WarmKernel | None:
        """Compile what `launch` would run. An argument that is no array in memory (Triton's MockTensor) has its type alone."""
        extents = self.extents(grid, given)  # before the arguments are read, which the user's function may change
        site = self.sites.find(keywords)
        if site.debug and not self.kernel.debug:
            return self.kernel.debug_build.launcher.warm_up(given, extents, keywords)
        known, values = self._known(site, given)
        made = self._made(known, given, _bound(known, values, extents), keywords, warm=True)
        return None if made is None else self._kept(made.compiled.artifact, keywords, self._constants(given))

    def preload(self, text: str) -> WarmKernel | None:
        """Compile what a hook heard of (specialization_data.py). Raises LaunchError TFW0353, and TFW0642 for a target that compiles
        for one launch."""
        info = self.sites.find({}).target.info
        data = specialization_data.read(text, specialization_data.full_name(self.kernel), info)
        site = self.sites.find(data.options)
        if site.debug and not self.kernel.debug:
            return self.kernel.debug_build.launcher.preload(text)
        known = made_known(self.kernel, site, data.signature, data.constexprs, data.facts)
        if specialization_data.tell(self.kernel, data, known.key(None), warm=True):
            return None
        constants = {p.name: data.constexprs[p.name] for p in self.kernel.params if p.is_constexpr and p.name in data.constexprs}
        return self._kept(known.made(self.sites.process).compiled.artifact, data.options, constants)

    def extents(self, grid: Grid, given: Sequence[Any]) -> tuple[int, int, int]:
        """A launch's grid as three extents; a function of the arguments is asked."""
        return grid_of(grid(self._by_name(given)) if callable(grid) else grid)

    def _by_name(self, given: Sequence[Any]) -> dict[str, Any]:
        return dict(zip(self.kernel.arg_names, given, strict=True))

    def _known(self, site: LaunchSite, given: Sequence[Any]) -> tuple[KnownLaunch, Sequence[Any]]:
        """What is compiled for a launch at the site, as for one before like it; and its run-time values."""
        words, values, facts = self._read(site, given)
        found = None if words is None else self.known.get(words)
        if found is None or not found.watched.unchanged():
            signature, constexprs, _ = specialize(self.kernel, self._by_name(given))
            found = made_known(self.kernel, site, signature, constexprs, facts)
            if words is not None:
                keep(self.known, words, found)
        return found, values

    def _read(self, site: LaunchSite, given: Sequence[Any]) -> tuple[Hashable | None, Sequence[Any], frozenset[str]]:
        """What tells a launch at the site from others of the kernel, None where an object decides it that may change; its run-time
        values; and the facts about its arrays that the target wants."""
        info = site.target.info
        reading = self.readings.find("ready", (*map(type, given),))
        found = None if reading is None else reading(given)
        if found is None:
            key, passed = read(self.kernel.params, given)
            facts = facts_that_hold(info, [value for value in passed if type(value) in ARRAYS])
            return None if key is None or not site.constant else (site, facts, *key), passed, facts
        facts = facts_of_storages(info, found[2], found[3])
        return (site, facts, reading, found[0]) if site.constant else None, found[1], facts

    def _made(
        self, known: KnownLaunch, given: Sequence[Any], bound: LaunchArguments | None, keywords: Mapping[str, Any], *, warm: bool
    ) -> MadeLaunch | None:
        """The artifact; None where a hook that hears of what is new has taken its compilation over."""
        if specialization_data.hook() is not None and not self._has(known, bound):
            data = self._specialization(known, given)
            if specialization_data.tell(self.kernel, data, known.key(bound), warm=warm):
                return None
        made = known.made(self.sites.process) if bound is None else known.made_for(bound)
        if id(made.compiled.artifact) not in self._warm_kernels():  # an entry keeps the artifact, and so its identity
            self._kept(made.compiled.artifact, keywords, self._constants(given))
        return made

    def _has(self, known: KnownLaunch, bound: LaunchArguments | None) -> bool:
        """Whether the kernels that are compiled have the artifact."""
        key = known.key(bound)
        artifact = None if key is None else known.site.target.memory.get(key)
        return artifact is not None and id(artifact) in self._warm_kernels()

    def _specialization(self, known: KnownLaunch, given: Sequence[Any]) -> specialization_data.SpecializationData:
        signature, constexprs, _ = specialize(self.kernel, self._by_name(given))
        target, shaping = known.site.target.info.name, dict(known.site.shaping)
        return specialization_data.SpecializationData(
            specialization_data.full_name(self.kernel), target, signature, constexprs, shaping, known.request.facts
        )

    def _constants(self, given: Sequence[Any]) -> dict[str, Any]:
        return {parameter.name: value for parameter, value in zip(self.kernel.params, given, strict=True) if parameter.is_constexpr}

    def _launched(
        self, known: KnownLaunch, artifact: Artifact, keywords: Mapping[str, Any], given: Sequence[Any]
    ) -> WarmKernel:
        """The kernel as this launch has it, made once for launches at one site with the same constants."""
        if known.launched is None or known.launched.artifact is not artifact:
            known.launched = self._warm(artifact, keywords, self._constants(given))
        return known.launched

    def _kept(self, artifact: Artifact, keywords: Mapping[str, Any], constants: Mapping[str, Any]) -> WarmKernel:
        warm = self._warm(artifact, keywords, constants)
        keep(self._warm_kernels(), id(artifact), warm)
        return warm

    def _warm(self, artifact: Artifact, keywords: Mapping[str, Any], constants: Mapping[str, Any]) -> WarmKernel:
        names = self.kernel.arg_names
        place = next((parameter.num for parameter in self.kernel.params if parameter.is_variadic), len(names))
        behind = {name: constants[name] for name in names[place + 1:] if name in constants}  # `*args`, which would take them
        before = {name: constants[name] for name in names[:place] if name in constants}
        return WarmKernel(artifact, functools.partial(self.kernel.run, **behind, **keywords), names[:place], before)

    def _warm_kernels(self) -> dict[Any, Any]:
        """Those that `device_caches` has: under device 0, the only one, and there first, as Triton."""
        return self.kernel.device_caches[0][0]


def _bound(known: KnownLaunch, values: Sequence[Any], extents: tuple[int, int, int]) -> LaunchArguments | None:
    """The launch that the code is made for, on a target that compiles so."""
    if known.site.target.info.wants & BOUND_FACTS:
        return launch_of(known.site.target.info, dict(zip(known.names, values, strict=True)), extents)
    return None


def _checked(known: KnownLaunch, extents: tuple[int, int, int], values: Sequence[Any]) -> tuple[Finding, ...]:
    budget = max(known.site.resolved.budget, DEFAULT_BUDGET)
    residence = RESIDENCE.get()
    if residence is not None:  # the interpreter reads the host's memory
        for array in values:
            if type(array) is HostArray:
                residence.leave(array.start, array.nbytes)
    fusion = known.request.enable_fp_fusion
    return check_program(
        known.source.build, extents, known.by_name(values), known.site.of_program, fusion=fusion, budget=budget
    )
