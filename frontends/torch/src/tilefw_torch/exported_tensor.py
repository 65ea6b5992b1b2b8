"""What PyTorch says of a result, and how rules compute float16 and bfloat16: in float32, rounded once, as its own kernels do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from torch.utils._pytree import tree_map

from tilefw.graph.builder import GraphValue, ModuleBuilder
from tilefw.tile import types

Rule = Callable[..., Any]
NARROW = ("fp16", "bf16")


@dataclass(frozen=True, slots=True)
class ExportedTensor:
    """What PyTorch says of a result: its element type and shape."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def summed(self) -> ExportedTensor:
        """The same in the type in which its elements are computed."""
        return replace(self, dtype="fp32") if self.dtype in NARROW else self


def element_type(value: GraphValue) -> str:
    """The name of a value's element type."""
    return types.dtype_of(value.type).name


def in_float32(rules: Mapping[str, Rule]) -> dict[str, Rule]:
    """The rules with elements of 16 bits widened before and rounded behind."""
    return {name: _widened(rule) for name, rule in rules.items()}


def _widened(rule: Rule) -> Rule:
    def computed(b: ModuleBuilder, out: ExportedTensor, *args: Any, **keywords: Any) -> Any:
        def held(value: Any) -> Any:
            return b.cast(value, "fp32") if isinstance(value, GraphValue) and element_type(value) in NARROW else value

        def rounded(value: Any) -> Any:
            return b.cast(value, out.dtype) if isinstance(value, GraphValue) and element_type(value) == "fp32" else value

        found = rule(b, out.summed, *tree_map(held, args), **tree_map(held, keywords))
        return tree_map(rounded, found) if out.dtype in NARROW else found

    return computed
