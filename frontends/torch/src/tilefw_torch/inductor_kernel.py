"""A kernel that PyTorch's compiler wrote, as the host code that it writes beside calls it: `kernel.run(*arguments, stream=…)`."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from torch._inductor.runtime import triton_heuristics

from tilefw_torch.heuristics import KernelHeuristics
from tilefw_torch.namespace import run_text
from tilefw_torch.report import CompiledKernelRecord


class InductorKernel:
    """One kernel for one target; the first launch of each kind compiles."""

    def __init__(self, record: CompiledKernelRecord, keywords: Mapping[str, Any]) -> None:
        self.record = record
        # The place is part of the key under which tilefw keeps code: the same text has the same one, in every process.
        place = f"<{record.name} of torch.compile {hashlib.sha256(record.source.encode()).hexdigest()[:16]}>"
        names = run_text(record.source, place, triton_heuristics=KernelHeuristics())
        self.function, extents = names[record.name]
        constexprs = [parameter.name for parameter in self.function.params if parameter.is_constexpr]
        self.constexprs = extents.constexprs(constexprs)
        self.parameters = [name for name in self.function.arg_names if name not in self.constexprs]
        # By its class: what PyTorch has to choose it (`from_meta`) asks for Triton.
        self.grid = getattr(triton_heuristics, extents.notes["grid_type"])(inductor_meta=dict(extents.notes))
        self.grid.generate(self.constexprs)
        self.keywords: dict[str, Any] = {"target": record.target, **self.constexprs, **keywords}
        read = _names_read(self.grid)
        self._read = [place for place, name in enumerate(self.parameters) if name in read]
        self._grids: dict[tuple[Any, ...], tuple[int, ...]] = {}  # by the arguments that the grid is made of

    def run(self, *args: Any, stream: Any = None, **keywords: Any) -> None:
        """Launch it. The host has no streams: launches are done one after the other."""
        read = tuple([args[place] for place in self._read])
        grid = self._grids.get(read)
        if grid is None:
            said = {**dict(zip(self.parameters, args, strict=True)), **self.constexprs}
            grid = self._grids[read] = tuple(self.grid.eval_slow(said))
        if 0 in grid:
            return
        self.record.launches += 1
        self.function[grid](*args, **keywords, **self.keywords)


def _names_read(grid: triton_heuristics.GridExpr) -> frozenset[str]:
    """The names that the text of a grid reads."""
    text = "\n".join([*grid.prefix, *map(str, (grid.x_grid, grid.y_grid, grid.z_grid))])
    return frozenset(compile(text, "<grid>", "exec").co_names)
