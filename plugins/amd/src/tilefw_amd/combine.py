"""gfx942's table of instruction combining."""

from __future__ import annotations

from functools import cache

from tilefw.api.simt import Combiner, Fusion
from tilefw_amd.isa.table import load_rows

_COMPARISONS = tuple(name for name in load_rows() if name.startswith("s_cmp_"))
# A comparison goes into the branch or the choice that reads it, so that SCC is not made a mask and back.
_CONDITIONS = tuple(
    fusion
    for name in _COMPARISONS
    for fusion in (
        *(Fusion(f"{way}.mask", f"compare.{name}", f"{way}.{name}", at=(0,), single=False) for way in ("branch", "branch_not")),
        *(Fusion(f"s_select_{bits}", f"compare.{name}", f"select.{name}", at=(0,), single=False) for bits in ("b32", "b64")),
    )
)


@cache
def combiner(fusion: bool) -> Combiner:
    """The table; without `fusion` every product and sum of floats is rounded by itself."""
    table: dict[str, list[Fusion]] = {}
    for rewrite in _CONDITIONS:
        table.setdefault(rewrite.outer, []).append(rewrite)
    return Combiner(table)
