"""The backend "tilefw" of torch.compile: PyTorch's compiler fuses and writes kernels, tilefw compiles and launches them."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import torch

from tilefw.api.errors import UnsupportedError, UsageError
from tilefw.runtime import config
from tilefw.runtime.plugins.loader import find_target
from tilefw_torch import flexible_attention
from tilefw_torch.decompositions import table
from tilefw_torch.inductor_patches import InductorCompile, compiling
from tilefw_torch.report import KEEPER, CompileReport, FallbackWarning
from tilefw_torch.resident_call import ResidentCall

_OLDEST, _NEXT = (2, 13), (2, 16)  # of PyTorch: the oldest that is served, and the first that is not
_CHOICES = {"fallback": ("eager", "error"), "weights": ("copied", "resident")}  # the first is the default


@dataclass(frozen=True, slots=True)
class BackendOptions:
    """What `options=` says: the target, how launches run there, what becomes of operators without a kernel, whether weights stay on
    the device between calls, and where what was made is told."""

    target: str
    executor: str | None = None
    budget: int | None = None
    fallback: str = "eager"
    weights: str = "copied"
    report: CompileReport | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> BackendOptions:
        """Raises UsageError TFW0920 for an unknown option or value, and what an unknown target raises."""
        for name in given:
            if name not in cls.__slots__:
                near = get_close_matches(name, cls.__slots__, 1)
                raise UsageError(
                    f"backend tilefw has no option '{name}'", code="TFW0920",
                    help=f"did you mean '{near[0]}'?" if near else f"the options are {', '.join(cls.__slots__)}",
                )
        said = {name: given.get(name, choices[0]) for name, choices in _CHOICES.items()}
        for name, choices in _CHOICES.items():
            if said[name] not in choices:
                raise UsageError(f"option {name} is '{said[name]}'", code="TFW0920", help=f"it is one of {', '.join(choices)}")
        kept = given.get("report")
        if kept is not None and not isinstance(kept, CompileReport):
            raise UsageError(
                f"option report is a {type(kept).__name__}", code="TFW0920", help="give it a tilefw_torch.CompileReport()"
            )
        executor, budget = given.get("executor"), given.get("budget")
        resolved = config.resolve(config.settings(given.get("target"), executor, budget=budget))
        return cls(find_target(resolved.target).name, executor, budget, report=kept, **said)

    def keywords(self) -> dict[str, Any]:
        """The launch keywords that were said."""
        return {name: value for name, value in (("executor", self.executor), ("budget", self.budget)) if value is not None}


def tilefw(
    model: torch.fx.GraphModule, inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None, mode: str | None = None
) -> Any:
    """What torch.compile calls with a graph. Raises UsageError TFW0920 and TFW0921, UnsupportedError TFW0365 (fallback="error")."""
    _require_served(torch.__version__)
    if mode is not None:
        raise UsageError(f"backend tilefw has no mode '{mode}'", code="TFW0920", help="leave mode= out; options= are given instead")
    from torch._inductor.compile_fx import compile_fx, compile_fx_inner

    chosen = BackendOptions.of(options or {})
    kept = KEEPER.current if chosen.report is None else chosen.report
    compile = InductorCompile(chosen.target, chosen.keywords(), kept, functools.partial(_left, chosen, kept))

    def inner(*args: Any, **keywords: Any) -> Any:
        # The backward pass may be compiled later, at its first run.
        with compiling(compile):
            graph = compile_fx_inner(*args, **keywords)
        weights = keywords.get("static_input_idxs", ()) if chosen.weights == "resident" else ()
        # Of a backward pass PyTorch gives the places of all that the forward one saved, inputs and sizes among it.
        stays = torch.nn.Parameter if keywords.get("is_backward") else torch.Tensor
        call = getattr(graph, "current_callable", None)
        if call is not None:  # the graph of no operator is a plain function
            vars(graph)["current_callable"] = ResidentCall(call, chosen.target, chosen.keywords(), weights, stays, kept)
        return graph

    flexible_attention.write_out(model)
    with compiling(compile):
        return compile_fx(model, inputs, inner_compile=inner, decompositions=table())


def _require_served(version: str) -> None:
    """Raises UsageError TFW0921 for a PyTorch whose compiler this backend does not know."""
    if not _OLDEST <= tuple(int(part) for part in version.split(".")[:2]) < _NEXT:
        raise UsageError(
            f"backend tilefw does not know the compiler of PyTorch {version}", code="TFW0921",
            help=f"install torch>={'.'.join(map(str, _OLDEST))},<{'.'.join(map(str, _NEXT))}",
        )


def _left(options: BackendOptions, kept: CompileReport, name: str) -> None:
    """An operator of the graph that PyTorch runs."""
    if options.fallback == "error":
        raise UnsupportedError(
            f"PyTorch's compiler writes no kernel for {name}", code="TFW0365",
            help='options={"fallback": "eager"} lets PyTorch run it on the host',
        )
    if name not in kept.fallbacks:
        warnings.warn(f"{name} is no kernel of {options.target}: PyTorch runs it on the host", FallbackWarning, stacklevel=2)
    kept.fallbacks[name] = kept.fallbacks.get(name, 0) + 1
