"""The primitives of matrix units; see `primitives` for what all of them have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilefw.sim.algebra.widths import primitive
from tilefw.sim.matrix.fragments import Accumulation, Fragment
from tilefw.sim.matrix.group_product import GroupProduct

Value = Any


class MatrixPrimitives:
    """Products of small matrices. A part of `Algebra`."""

    @primitive(lambda a, b, c, *_, **__: c)
    def matrix_multiply(
        self, a: Sequence[Value], b: Sequence[Value], c: Sequence[Value], a_map: Fragment, b_map: Fragment, c_map: Fragment,
        accumulation: Accumulation, d_map: Fragment | None = None,
    ) -> tuple[Value, ...]:
        """D = A x B + C over the lanes of each wave, all of which take part. A is m x k, B is k x n, C and D are m x n; each is
        spread over registers and lanes as its `fragments.Fragment` says, element format included. Products are exact;
        `accumulation` says how sums are rounded under "hw" numerics ("ieee" sums in the format of `d_map` or wider, in no
        particular order). Integers accumulate modulo 2**32, or clamped if it says so. `d_map` defaults to `c_map`. Fragments with
        `blocks` hold several products, block by block."""
        ...

    @primitive(lambda a, index, b, c, *_, **__: c)
    def sparse_matrix_multiply(
        self, a: Sequence[Value], index: Value, b: Sequence[Value], c: Sequence[Value], a_map: Fragment, index_map: Fragment,
        b_map: Fragment, c_map: Fragment, accumulation: Accumulation,
    ) -> tuple[Value, ...]:
        """`matrix_multiply` of an A with two of every four columns (2:4 sparsity): `a_map` is m x k/2, and of its columns 2*g and
        2*g + 1 the index, of the same shape and in elements "u2", says which row of B's 4*g to 4*g + 3 each is multiplied
        with. Rows of B that no index names do not take part, whatever they hold."""
        ...

    @primitive(lambda a, a_scales, b, b_scales, c, *_, **__: c)
    def scaled_matrix_multiply(
        self, a: Sequence[Value], a_scales: Value, b: Sequence[Value], b_scales: Value, c: Sequence[Value], a_map: Fragment,
        a_scale_map: Fragment, b_map: Fragment, b_scale_map: Fragment, c_map: Fragment, accumulation: Accumulation,
    ) -> tuple[Value, ...]:
        """`matrix_multiply` with a factor for each run of k: `a_scale_map` is m x runs, `b_scale_map` runs x n, and run i has the
        i-th of equal parts of k (OCP MX 1.0: 32 elements and a power of two, "f8E8M0FNU")."""
        ...

    @primitive(lambda a, b, c, *_, **__: c)
    def group_multiply(
        self, a: Sequence[Value], b: Value, c: Sequence[Value], accumulate: Value, product: GroupProduct
    ) -> tuple[Value, ...]:
        """D = A x B + C over groups of waves, whole groups of which act (`matrix.group_product`); C counts as zero where the
        predicate `accumulate` does not hold. `b` is the descriptor of a tile in shared memory, and so is the one value of `a`
        where the product's A is a tile. Descriptors and predicate are the same for a group. Rounding is as in `matrix_multiply`.
        Shared memory is read by the unit and not by the waves (`Access.engine`)."""
        ...
