"""The library kernels whose machine code is broken on purpose: small blocks, ragged edges, pipelines of several depths.

Every variant runs the very code of its case on sizes where other instructions decide: loops of no iteration and of fewer
iterations than a pipeline has stages, and last rows wherever one load may have them, since only behind the last element does an
access that should not be end outside of its array.
"""

from __future__ import annotations

from oracles.library_subject import Configuration, Variant
from tilefw.kernels.index import KERNELS

_BLOCKS = {"block_m": 32, "block_n": 32, "block_k": 32}
_FEWER_TERMS = (Variant({"k": 16, "m": 50}), Variant({"k": 48}))
# A sum of no terms: arrays without elements, whose strides NumPy gives as 0.
_NO_TERMS = Variant({"k": 0}, {"stride_am": 16, "stride_ak": 1, "stride_bk": 48, "stride_bn": 1})
# exp overflows unless it is the very maximum of a row that is taken off first.
_STEEP = Variant(scale=200.0)
# No step of time at all: what a loop would have waited for is still under way behind it.
_NO_TIME = Variant(scalars={"length": -5})
# Factors whose products neither vanish nor run away: else what is far back in a recurrence is below every bound.
_GROWING = Variant(scale=2.7)
# Heads of no elements in buffers as wide as the code was made for: the conditions on a head's elements decide.
_NO_HEAD = Variant(scalars={"head_size": 0})


def _matmul(stages: int, *variants: Variant, **over: object) -> Configuration:
    parameters = {"m": 37, "n": 48, "k": 144, **_BLOCKS, "num_stages": stages, **over}
    return Configuration("matmul", parameters, variants or _FEWER_TERMS)


def _attention(*variants: Variant, **over: object) -> Configuration:
    sizes = {"head_size": 32, "block_m": 32, "block_n": 16, "heads": 1, "kv_heads": 1, "num_warps": 2}
    return Configuration("attention", {**sizes, **over}, variants)


CONFIGURATIONS = {
    "softmax": Configuration("softmax", {"rows": 5, "columns": 300, "programs": 2}, (Variant({"columns": 20}), _STEEP)),
    "softmax_long": Configuration(
        "softmax", {"rows": 3, "columns": 300, "block": 128, "programs": 2, "dtype": "fp32"}, (Variant({"columns": 20}), _STEEP),
    ),
    "layernorm": Configuration("layernorm", {"rows": 3, "columns": 300, "block": 512}, (Variant({"columns": 20}),)),
    "layernorm_backward": Configuration("layernorm_backward", {"rows": 9, "columns": 150}, (Variant({"columns": 20}),)),
    "rmsnorm": Configuration("rmsnorm", {"rows": 3, "columns": 300, "block": 128}, (Variant({"columns": 20}),)),
    "matmul_f16": _matmul(3),
    "matmul_f16_even": _matmul(4, Variant({"k": 32}), _NO_TERMS, k=160),
    "matmul_tf32": _matmul(2, dtype="fp32", num_warps=8),
    "matmul_transposed": _matmul(
        3, Variant({"k": 16, "n": 50}), Variant({"k": 48}), dtype="bf16", a_layout="columns", b_layout="columns", m=48, n=37,
    ),
    "int8_matmul": Configuration("int8_matmul", {"m": 37, "n": 48, "k": 144, **_BLOCKS, "num_warps": 2}, _FEWER_TERMS),
    "batched_matmul": Configuration(
        "batched_matmul", {"batch": 2, "m": 37, "n": 48, "k": 80, **_BLOCKS, "num_stages": 2}, _FEWER_TERMS,
    ),
    # Tiles that the diagonal cuts go in a second loop; between the two an odd number of tiles has been read, or none.
    "attention_causal": _attention(
        Variant({"queries": 37, "keys": 37}), Variant({"queries": 37, "keys": 60}), Variant({"queries": 21, "keys": 21}), _NO_HEAD,
        queries=71, keys=71, heads=2, block_m=64, num_warps=4, num_stages=3,
    ),
    "attention": _attention(
        Variant({"keys": 5}), Variant({"keys": 20}), Variant(scale=30.0), _NO_HEAD, queries=37, keys=70, causal=False,
    ),
    "transpose": Configuration(
        "transpose", {"rows": 37, "columns": 45, "block_rows": 32, "block_columns": 32},
        tuple(Variant({"rows": last + 1, "columns": 3}) for last in range(2, 32, 4)),
    ),
    "column_sum": Configuration(
        "column_sum", {"rows": 50, "columns": 50, "block_rows": 16, "block_columns": 32},
        tuple(Variant({"rows": rows}) for rows in (2, 6, 10, 14)),
    ),
    "welford": Configuration("welford", {"rows": 6, "columns": 299}, (Variant({"columns": 21}), Variant({"columns": 230}))),
    # So many rows that each exchange between lanes decides one; and few values, so that indices decide.
    "argmax": Configuration(
        "argmax", {"rows": 70, "columns": 140, "block_columns": 128, "inputs": "normal"},
        (Variant({"columns": 20, "inputs": "ints"}),),
    ),
    "cross_entropy": Configuration("cross_entropy", {"rows": 4, "classes": 300, "block": 256}, (Variant({"classes": 20}), _STEEP)),
    # Within registers, between lanes and between warps; by rows and by a function of pairs, forward and in reverse.
    "scan_rows": Configuration(
        "scan_tile", {"operation": "sum", "layers": 1, "rows": 4, "columns": 256, "inputs": "normal", "reverse": True},
    ),
    "scan_columns": Configuration(
        "scan_tile", {"operation": "product", "axis": "1", "layers": 1, "rows": 128, "columns": 4, "inputs": "uniform"},
    ),
    "scan_recurrence": Configuration(
        "scan_tile", {"operation": "recurrence", "layers": 2, "rows": 1, "columns": 256}, (_GROWING,),
    ),
    "selective_scan": Configuration(
        "selective_scan", {"batch": 1, "channels": 2, "states": 4, "length": 150}, (Variant({"length": 20}), _NO_TIME),
    ),
    # Atomics that only meet at addresses ask for no order; where one makes another's stores known they ask for no more than
    # that takes. So an order, a fence, a cache action or a barrier that is there decides.
    "histogram": Configuration("histogram", {"n": 700, "bins": 7, "order": "relaxed", "block": 256}, (Variant({"n": 600}),)),
    "atomic_old_values": Configuration("atomic_mix", {"operation": "max", "n": 300, "order": "relaxed"}),
    "atomic_halves": Configuration("atomic_mix", {"dtype": "bf16", "n": 300, "share": 3, "order": "relaxed"}),
    "split_k_matmul": Configuration(
        "split_k_matmul", {"m": 37, "n": 40, "k": 112, "splits": 2, "order": "relaxed"}, (Variant({"k": 16}),),
    ),
    # One element of all wins: each launch has it in another lane, so that each exchange between lanes decides one.
    "grid_argmax": Configuration(
        "grid_argmax", {"n": 1500},
        (*(Variant({"n": n}) for n in (3, 25, 190)), *(Variant({"n": n, "inputs": "uniform"}) for n in (300, 1100))),
    ),
    "locked_accumulate": Configuration("locked_accumulate", {"rows": 6, "groups": 2, "order": "least"}),
    "chained_sum": Configuration(
        "chained_sum", {"n": 900, "order": "least", "inputs": "normal"}, (Variant({"n": 790}),),
    ),
}

# Programs behind the last group of blocks, whose blocks begin before the array: lanes store those, nothing of which is in range. Of
# no terms, as the loads of such blocks are out of bounds.
_BEYOND = Variant({"k": 0}, {"stride_am": 16, "stride_ak": 1, "stride_bk": 80, "stride_bn": 1}, programs=24)

# On a chip whose matrix unit four waves share, and with an engine that copies boxes: copies of both kinds, rings that are filled
# again, products of one and of several atoms, chains of products.
WARPGROUPS = {
    "warpgroup_matmul": _matmul(
        3, Variant({"k": 32}), Variant({"k": 48, "m": 20}), _BEYOND, m=72, n=80, block_m=64, block_n=64,
    ),
    "warpgroup_matmul_128": _matmul(
        3, Variant({"k": 32}), _BEYOND, m=136, n=80, k=208, block_m=128, block_n=64, block_k=64, num_warps=4,
    ),
    "warpgroup_descriptors": Configuration("descriptor_matmul", {"k": 304}, (Variant({"k": 16}),)),
    # Whole blocks of keys and one that is cut: three and one, none and one, one and one, two and one.
    "warpgroup_attention": _attention(
        Variant({"keys": 40}), Variant({"keys": 100}), Variant({"keys": 152}),
        queries=71, keys=200, head_size=64, block_m=64, block_n=64, num_warps=4, causal=False,
    ),
}

_MEASURED = {configuration.kernel for configuration in CONFIGURATIONS.values()}
_VAST = {"far_rows"}  # arrays of GiB, which would be restored for each mutant
# Every other kernel, as its defaults have it; where a program has several blocks, so that what one reads another writes, with odd
# numbers of steps for each.
OTHERS = {
    **{name: Configuration(name, {}) for name in KERNELS if name not in _MEASURED | _VAST},
    "grouped_matmul": Configuration("grouped_matmul", {"programs": 2}, (Variant({"k": 16}), Variant({"k": 80}))),
}


def _tile(block: tuple[int, int, int], warps: int, stages: int) -> Configuration:
    """Two blocks by two, the second of each sixteen wide, and four steps, the last of sixteen terms."""
    m, n, k = block
    options = {"block_m": m, "block_n": n, "block_k": k, "num_warps": warps, "num_stages": stages}
    return Configuration("matmul", {"m": m + 16, "n": n + 16, "k": 3 * k + 16, **options}, (Variant({"m": 16, "k": 16}),))


def _head(size: int, variant: Variant, **over: object) -> Configuration:
    sizes = {"head_size": size, "block_m": 128, "block_n": 64, "num_warps": 4, "heads": 1, "queries": 128, "keys": 200}
    return Configuration("attention", {**sizes, **over}, (variant,))


# Tiles as they are chosen for speed. They fill the chip's registers, or more.
LARGE = {
    "matmul_128x128x32": _tile((128, 128, 32), 4, 1),
    "matmul_128x128x64": _tile((128, 128, 64), 4, 2),
    "matmul_256x256x64": _tile((256, 256, 64), 8, 2),
}
# Such as take a minute to be run.
SLOW = {
    "attention_64": _head(64, Variant({"keys": 40}), causal=False),
    "attention_causal_128": _head(128, Variant({"queries": 48, "keys": 56})),
}
