"""Every barrier of a kernel's PTX is needed: with any one of them taken out the simulator reports a race."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from chips_here import OLDEST, body

from tilefw.api import Artifact, CheckError
from tilefw.kernels import spec as library
from tilefw.kernels.reference import typed
from tilefw.runtime import config
from tilefw.runtime.compilation import compiler, kernel_source, options
from tilefw.runtime.jit import specialize
from tilefw.runtime.module import Module
from tilefw.runtime.plugins import loader
from tilefw_nvidia.chips import Chip

BARRIER = re.compile(r"\tbar\.sync 0;\n")
# Loops, rings, reductions and conversions; sizes so small that a run takes a moment, yet every loop goes round.
KERNELS: dict[str, dict[str, Any]] = {
    "softmax": {}, "layernorm_backward": {}, "transpose": {"rows": 64, "columns": 64}, "argmax": {}, "column_sum": {}, "matvec": {},
    "matmul": {"m": 64, "n": 64, "k": 160, "num_stages": 3}, "int8_matmul": {"m": 64, "n": 64, "k": 256},
    "attention": {"queries": 64, "keys": 170, "heads": 1, "kv_heads": 1, "causal": False},
}

_OF_ONE_GROUP = (
    "who waits for a warpgroup's product waits for all of its warps' parts, as CUTLASS's pipelines take it, which release a slot "
    "by one thread; the pass that places barriers does not know it of chips"
)
_OF_ALL_WAITING = "each thread waits for an engine's first copy by itself; barriers are placed before waits are for phases"
# Barriers that nothing misses, each with the reason.
UNMISSED: dict[tuple[str, str], tuple[str, ...]] = {
    ("sm_90a", "matmul"): (_OF_ALL_WAITING, _OF_ONE_GROUP, _OF_ONE_GROUP),  # in the loop, and before its slots hold the result
    ("sm_90a", "attention"): (_OF_ONE_GROUP,) * 3,  # in either loop, and before the result is where the queries were
}


class Case:
    """A library kernel compiled for one launch, which any artifact of the same kernel can be run on."""

    def __init__(self, name: str, target: str) -> None:
        self.spec = library.load(name)
        self.parameters = self.spec.resolve(KERNELS[name])
        launch = self.launch()
        given = {**{key: typed(value) for key, value in launch.arguments.items()}, **launch.constexprs}
        self.signature, constexprs, _ = specialize(self.spec.kernel, {p.name: given[p.name] for p in self.spec.kernel.params})
        self.target = loader.find_target(config.resolve(config.settings(target)).target)
        source = kernel_source.from_jit(self.spec.kernel, self.signature, constexprs)
        request = options.resolve(launch.keywords, self.target.info, facts=("disjoint",), keep_levels=False)
        self.artifact = compiler.compile_source(source, self.target, request, assemble=False).artifact

    def launch(self) -> Any:
        return self.spec.prepare(self.parameters, np.random.default_rng(0))

    def findings(self, artifact: Artifact) -> list[str]:
        """The checks that report something."""
        launch = self.launch()
        arguments = [typed(launch.arguments[name]) for name, kind in self.signature.items() if not kind.endswith(":1")]
        try:
            Module(artifact, self.target).only().launch(launch.grid, arguments, checks="all")
        except CheckError as error:
            return [finding.check for finding in error.findings]
        return []


@pytest.mark.parametrize("name", KERNELS)
def test_without_any_one_there_is_a_race(name: str, chip: Chip) -> None:
    case = Case(name, chip.target)
    if chip is not OLDEST and body(case.artifact) == body(Case(name, OLDEST.target).artifact):
        return  # the oldest chip's test speaks for this one
    assert case.findings(case.artifact) == []
    text = case.artifact.text
    places = [match.span() for match in BARRIER.finditer(text)]
    assert places
    unmissed = [
        text.count("\n", 0, start) + 1 for start, end in places
        if "races" not in case.findings(replace(case.artifact, text=text[:start] + text[end:]))
    ]
    assert len(unmissed) == len(UNMISSED.get((chip.name, name), ())), f"barriers at lines {unmissed} are not missed"
