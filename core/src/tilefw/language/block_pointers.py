"""Block pointers: a block of a strided array as one value, which is loaded, stored and moved as a whole.

    a = tl.make_block_ptr(a_ptr, (M, K), (stride_m, stride_k), (row * BLOCK_M, 0), (BLOCK_M, BLOCK_K), (1, 0))
    for k in range(0, K, BLOCK_K):
        acc = tl.dot(tl.load(a, boundary_check=(0, 1)), w, acc)
        a = tl.advance(a, (0, BLOCK_K))

They are those of Triton 3.8, the last that had them. Loops, branches, calls and tuples hand them on as any other value; arithmetic
on one is refused.
"""

from __future__ import annotations

from typing import Any

from tilefw.language.markers import builtin


@builtin
def make_block_ptr(base: Any, shape: Any, strides: Any, offsets: Any, block_shape: Any, order: Any) -> Any:
    """A pointer to the block at `offsets` of the array whose element 0 is at `base`.

    `shape` and `strides` are the array's, in elements (32 or 64 bits), `offsets` are 32-bit integers that may be negative, and
    `block_shape` holds compile-time powers of two: one entry an axis in each. `order` lists the axes from the fastest in memory
    on; it must be a permutation and changes nothing, since strides say the same. The product of an offset and a stride is
    computed in 64 bits. A block of an array of bools has int8 elements.
    """
    ...


@builtin
def advance(base: Any, offsets: Any) -> Any:
    """The block pointer `base` moved by `offsets` elements, one 32-bit integer an axis; `base` itself stays as it is."""
    ...
