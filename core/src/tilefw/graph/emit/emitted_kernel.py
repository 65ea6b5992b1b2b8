"""A kernel that has been written for a group: its text, and how it is launched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tilefw.language as tl
from tilefw.api.cost import LaunchWork
from tilefw.graph.product_tiles import ProductExtents
from tilefw.language.extra import libdevice
from tilefw.runtime.jit import JITFunction, jit


@dataclass(frozen=True, slots=True)
class EmittedKernel:
    """The function `name` of `source`. Its parameters are `in0_ptr`, … for the group's operands and `out0_ptr`, … for its results,
    in this order, those of `inputs` and `outputs` only that it uses, and the constants of its tile (`ProductTile`)."""

    name: str
    source: str
    extents: ProductExtents
    computed: LaunchWork

    def kernel(self) -> JITFunction:
        """The function, ready to be launched."""
        names: dict[str, Any] = {"tl": tl, "libdevice": libdevice}
        exec(compile(self.source, f"<graph {self.name}>", "exec"), names)
        return jit(source=self.source)(names[self.name])
