"""A function of the user's on every element of tiles."""

from __future__ import annotations

from typing import Any

from tilefw.language.markers import builtin
from tilefw.language.tensor import tensor


@builtin
def map_elementwise(scalar_fn: Any, *args: tensor, pack: int = 1) -> Any:
    """What the jit function `scalar_fn` returns for each element of the tiles `args`, which are broadcast to one shape.

        @tilefw.jit
        def sign(x, y):
            if x < y:
                return -1
            elif x == y:
                return 0
            else:
                return 1

        z = tl.map_elementwise(sign, x, y)

    A function that returns a tuple gives a tuple of tiles. With `pack`, a power of two, each call takes `pack` elements that are
    neighbours along the last axis: first those of the first tile, then those of the next; it returns as many for each result, in
    the same order. The function may compute and branch: no memory, no tiles, no loops at run time. Both sides of a branch are
    computed and one is chosen.
    """
    ...


@builtin
def inline_asm_elementwise(asm: str, constraints: str, args: Any, dtype: Any, is_pure: bool, pack: int) -> Any:
    """What assembly text of the target gives for each `pack` elements of the tiles `args`, which are broadcast to one shape.

        y = tl.inline_asm_elementwise("shl.b32 $0, $1, 3;", "=r,r", [x], dtype=tl.int32, is_pure=True, pack=1)

    `$0` is the first result, operands follow the results. `constraints` name their registers in LLVM's words, as the target knows
    them. Elements of less than 32 bits stand together in registers of 32 bits, as many as `pack` allows. A tuple of types `dtype`
    gives a tuple of tiles. Text of another target's language is refused.
    """
    ...
