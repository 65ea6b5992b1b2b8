"""Where a planted bug changes a kernel's IR and cannot be seen, with the reason: an entry that is found all the same is wrong."""

from __future__ import annotations

from collections.abc import Iterator

_COUNTED = "indices, sizes and counts are never negative: both operations give the same"
_GUARDED = "what is compared is bounded from the other side too: both operations leave out the same elements"
_NEUTRAL = "masks leave nothing of the trip but neutral elements, and none of its stores"
_NOT_STORED = "masked-off elements reach no store and no reduction"
_NAN_ANYWAY = "a NaN among the row's elements makes every result of the row NaN either way"
_NO_NAN = "its inputs are finite, and none of its results is NaN"
_MODERATE = "its inputs are finite numbers of moderate size: nothing overflows"
_NORMAL = "its inputs are normal numbers of moderate size: no sum or product is subnormal but beside a larger one"
_SHIFT_FREE = "a subnormal difference counts as zero below the exponential: both give 1"
_RESCALED = "the first trip multiplies what it starts with by exp(-inf) = 0"
_EVEN_IN_EXP = "zeros of either sign have the exponential 1"
_AGAIN = "programs that share rows or blocks with too small a step do some of them twice, with the same result"
_WHOLE_PROGRAMS = "nothing but atomics is ordered by it, and an interpreter runs the programs one after the other"

_REASONS: dict[str, dict[str, str]] = {
    "signed-as-unsigned": {
        _COUNTED: "attention chained_sum column_sum cross_entropy embedding grid_argmax grouped_matmul integer_mix layernorm "
        "layernorm_backward masks matmul reduce_tile sparse_matvec split_k_matmul vector_add welford",
        _GUARDED: "histogram stencil",
    },
    "divide-unsigned": {_COUNTED: "atomic_mix attention batched_matmul grouped_matmul locked_accumulate masks matmul ragged_sums"},
    "zero-extended": {
        _COUNTED: "attention embedding far_rows rmsnorm rope selective_scan softmax split_k_matmul stencil swiglu",
        "the value's upper half is shifted out, and the index is not negative": "grid_argmax",
    },
    "sign-extended": {_COUNTED: "embedding"},
    "to-float-unsigned": {_COUNTED: "cross_entropy layernorm layernorm_backward rmsnorm shared_buffers"},
    "order-unsigned": {_COUNTED: "attention layernorm_backward matmul ragged_sums"},
    "nan-kept": {_NAN_ANYWAY: "attention cross_entropy softmax", _NO_NAN: "matmul quantize"},
    "infinity-saturated": {
        _MODERATE: "attention cross_entropy int8_matmul locked_accumulate matmul quantize ragged_sums selective_scan softmax "
        "sparse_matvec welford",
    },
    "subnormals-flushed": {
        _SHIFT_FREE: "softmax cross_entropy attention",
        _NORMAL: "int8_matmul layernorm layernorm_backward locked_accumulate matmul matvec quantize ragged_sums "
        "selective_scan sparse_matvec stencil welford",
    },
    "loop-runs-on": {
        _NEUTRAL: "argmax batched_matmul column_sum cross_entropy int8_matmul layernorm matvec rmsnorm selective_scan "
        "sparse_matvec split_k_matmul swiglu welford",
    },
    "sum-from-one": {_RESCALED: "attention softmax"},
    "negated-from-zero": {_EVEN_IN_EXP: "gelu_bias_residual swiglu"},
    "other-ignored": {
        _NOT_STORED: "atomic_mix gelu_bias_residual histogram integer_mix locked_accumulate quantize rope swiglu",
        "masked-off elements have the weight 0": "welford",
    },
    "other-zero": {_NOT_STORED: "histogram integer_mix rope"},
    "one-program-fewer": {_AGAIN: "grouped_matmul softmax"},
    "atomic-unordered": {_WHOLE_PROGRAMS: "atomic_mix grid_argmax histogram split_k_matmul"},
    "atomic-gives-new": {"it adds 0, to read: old and new value are one": "chained_sum"},
    "cas-always": {"the lock is 0 or 1: where the compare fails, it is exchanged for the 1 that it holds": "locked_accumulate"},
    "bound-included": {
        "beyond the bound the other operand is zero, and nothing is stored": "layernorm_backward sparse_matvec",
        "loads and stores have bounds of their own by then": "vector_add",
    },
    "cast-rounding": {"what is narrowed was widened and compared, nothing else: it is exact": "reduce_tile"},
    "rounded-twice": {"what is narrowed was widened and compared, nothing else: it is exact": "reduce_tile"},
    "half-arithmetic": {
        "small whole numbers, exact in fp16: their sums must not depend on the order of programs": "locked_accumulate",
    },
    "cast-overflows": {"the values are clamped to the format's range before": "quantize"},
    "int-rounded": {"the values are whole numbers before": "quantize"},
    "int-wrapped": {"the values are clamped to the integer's range before": "quantize"},
    "reciprocal-division": {"the quotient is rounded to 8 bits: only one within its last bit of a tie would differ": "quantize"},
    "grid-flat": {"a row takes one block: the second axis has one program": "far_rows"},
}


def _pairs() -> Iterator[tuple[tuple[str, str], str]]:
    for bug, reasons in _REASONS.items():
        for reason, kernels in reasons.items():
            for kernel in kernels.split():
                yield (bug, kernel), reason


UNSEEN: dict[tuple[str, str], str] = dict(_pairs())
"""By bug and kernel."""
