"""tilefw's own machine code of a library kernel as the subject of a mutation campaign; the reference's bounds judge its outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from oracles.site import Site
from oracles.subject import Run
from tilefw.api import CheckError
from tilefw.api.artifact import Artifact
from tilefw.api.backend import CompileOptions
from tilefw.api.device import DEFAULT_BUDGET
from tilefw.api.dtypes import dtype
from tilefw.kernels import spec as library
from tilefw.kernels.reference import Reference, typed
from tilefw.kernels.spec import Buffer, Launch
from tilefw.runtime.arguments.array_facts import facts_of
from tilefw.runtime.compilation import compiler, kernel_source, options
from tilefw.runtime.compilation.kernel_source import ModuleSource
from tilefw.runtime.jit import specialize
from tilefw.runtime.module import Module
from tilefw.runtime.plugins.loader import Target, find_target


@dataclass(frozen=True)
class Judged:
    """Whose code is broken: a target, the sites of its text, the proofs of what changes nothing, and what arguments go by."""

    target: str
    corpus: str
    sites: Callable[[str], Sequence[Site]]
    proof: Callable[[str, Site], str]


@dataclass(frozen=True)
class Variant:
    """Another launch of the same code: other parameters, which may be out of the library's range (an extent of 0), other scalars.

    `scale` multiplies the float inputs; `programs` is the grid where it is not the library's: more programs than there are blocks.
    """

    parameters: Mapping[str, Any] = field(default_factory=dict)
    scalars: Mapping[str, int] = field(default_factory=dict)
    scale: float = 1.0
    programs: int = 0


@dataclass(frozen=True)
class Configuration:
    """A kernel compiled one way: `parameters` over its defaults."""

    kernel: str
    parameters: Mapping[str, Any]
    variants: tuple[Variant, ...] = ()

    def launch(self, variant: Variant | None) -> Launch:
        """Fresh arrays for a variant, or for the configuration itself; constexprs are always the configuration's own."""
        spec = library.load(self.kernel)
        own = spec.resolve(self.parameters)
        launch = spec.prepare(own, np.random.default_rng(1))
        if variant is None:
            return launch
        other = spec.prepare({**own, **variant.parameters}, np.random.default_rng(1))
        if variant.scale != 1:
            _multiply(other, variant.scale)
        grid = (variant.programs, *other.grid[1:]) if variant.programs else other.grid
        return replace(other, grid=grid, constexprs=launch.constexprs, arguments={**other.arguments, **variant.scalars})


def _multiply(launch: Launch, scale: float) -> None:
    for name, value in launch.arguments.items():
        if isinstance(value, Buffer) and name not in launch.outputs and dtype(value.dtype).is_float:
            value.array[...] = (value.array.astype(np.float64) * scale).astype(value.array.dtype)


def specialized(kernel: Any, launch: Launch) -> tuple[dict[str, str], dict[str, Any], ModuleSource]:
    """A launch's signature, the values of its parameters, and what is compiled for it."""
    given = {**{name: typed(value) for name, value in launch.arguments.items()}, **launch.constexprs}
    signature, constexprs, values = specialize(kernel, {p.name: given[p.name] for p in kernel.params})
    return signature, values, kernel_source.from_jit(kernel, signature, constexprs)


def requested(launch: Launch, target: Target) -> CompileOptions:
    """The options that a library kernel is compiled with, and what its launch knows of its arrays."""
    given = {name: typed(value) for name, value in launch.arguments.items()}
    return options.resolve(launch.keywords, target.info, facts=facts_of(target.info, given))


class _Prepared:
    """One launch: its arguments, what they held at first, and what the reference makes of them."""

    def __init__(self, kernel: Any, launch: Launch) -> None:
        self.launch = launch
        self.signature, self.values, self.source = specialized(kernel, launch)
        self.passed = {name: self.values[name] for name, kind in self.signature.items() if not kind.endswith(":1")}
        self.reference = Reference(self.source.build(), self.launch.grid, self.passed, budget=DEFAULT_BUDGET)
        self.before = [store.view().copy() for store in self.reference.stores]

    def artifact(self, name: str) -> Artifact:
        target = find_target(name)
        return compiler.compile_source(self.source, target, requested(self.launch, target), assemble=False).artifact

    def restore(self) -> None:
        for store, bytes_ in zip(self.reference.stores, self.before, strict=True):
            np.copyto(store.view(), bytes_)

    def mismatch(self) -> str:
        """The first output that is out of bounds, inside its array or around it."""
        for name in self.launch.outputs:
            comparisons = {name: self.reference.compare(name)}
            if not self.reference.covers_storage(name):
                comparisons[f"{name} (around)"] = self.reference.compare_around(name)
            for shown, comparison in comparisons.items():
                if comparison.wrong:
                    return f"{shown}: {comparison}"
        return ""


class LibrarySubject:
    """A library kernel in one configuration, compiled once for all of its launches."""

    def __init__(self, name: str, configuration: Configuration, judged: Judged) -> None:
        self.name, self.corpus = name, judged.corpus
        self._judged = judged
        kernel = library.load(configuration.kernel).kernel
        self._prepared = [_Prepared(kernel, configuration.launch(variant)) for variant in (None, *configuration.variants)]
        self._artifact = self._prepared[0].artifact(judged.target)
        for other in self._prepared[1:]:
            if other.signature != self._prepared[0].signature:
                raise AssertionError(f"{name}: a variant asks for other code: {other.signature}, {self._prepared[0].signature}")
        self.text, self.launches = self._artifact.text, len(self._prepared)

    def sites(self) -> list[Site]:
        return sorted(self._judged.sites(self.text), key=lambda site: site.line)

    def proof(self, site: Site) -> str:
        return self._judged.proof(self.text, site)

    def parse(self, text: str) -> Any:
        """The same artifact with the changed text, and with what that assembles to where the simulator executes bytes."""
        binary = find_target(self._judged.target).backend.parse(text, self.name).binary
        return replace(self._artifact, text=text, binary=binary)

    def run(self, launch: int, code: Any, seed: int, budget: int | None) -> Run:
        prepared = self._prepared[launch]
        prepared.restore()
        try:
            result = Module(code, find_target(self._judged.target)).only().launch(
                prepared.launch.grid, list(prepared.passed.values()), checks="all", seed=seed, budget=budget,
            )
        except CheckError as error:
            return Run(tuple(error.findings))
        return Run(result.diagnostics, prepared.mismatch(), result.counters["instructions"])
