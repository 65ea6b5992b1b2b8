"""Reading and writing global memory through pointers and tiles of pointers."""

from __future__ import annotations

from typing import Any

from tilefw.language.markers import builtin
from tilefw.language.tensor import tensor


@builtin
def load(
    pointer: Any,
    mask: Any = None,
    other: Any = None,
    *,
    cache_modifier: str = "",
    eviction_policy: str = "",
    volatile: bool = False,
    boundary_check: Any = (),
    padding_option: str = "",
) -> tensor:
    """The elements that `pointer`, a pointer or a tile of pointers, points to; the result has its shape.

    `mask` (int1) and `other` broadcast to the pointer's shape; for a scalar pointer they are scalars. Where `mask` is
    false nothing is read and the result is `other`, cast to the element type (undefined without `other`, which needs a
    mask). `cache_modifier` is one of "", ".ca", ".cg", ".cs", ".cv", `eviction_policy` one of "", "evict_first",
    "evict_last"; they and `volatile` reach the target, which may ignore the first two.

    A block pointer takes no mask: `boundary_check` names the axes along which elements below 0 or from the array's extent on are
    not read, and `padding_option` what they are instead: "zero" (also where nothing is said) or, of floats, "nan".
    """
    ...


@builtin
def store(
    pointer: Any,
    value: Any,
    mask: Any = None,
    *,
    cache_modifier: str = "",
    eviction_policy: str = "",
    boundary_check: Any = (),
) -> None:
    """Write `value`, broadcast to the shape of `pointer` and cast to its element type, where `mask` is true.

    For a scalar pointer value and mask are scalars. `cache_modifier` is one of "", ".wb", ".cg", ".cs", ".wt",
    `eviction_policy` as in `load`. Two elements of one tile stored to one address leave one of the values.

    A block pointer takes a tile of its block's shape and element type, or a number, and no mask: nothing is written out of the
    array along the axes that `boundary_check` names.
    """
    ...


@builtin
def debug_barrier() -> None:
    """Wait until every lane of the program is here; stores before it are seen by loads of the program after it."""
    ...
