"""Launches of Triton-distributed's kernels on a node: arguments as the library's host gives them, and what must come of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

Options = dict[str, Any]
Launch = Callable[[ModuleType, Any, int, Options], bool]
"""Of a file's kernels, a node, a seed and options; whether the results are right."""
N, BLOCK = 500, 256
PART = 256  # words of int32 that each rank has of a gathered array


@dataclass(frozen=True)
class Example:
    """Kernels of a file below `python/triton_dist/kernels`, the programs of each launch, and what launches them."""

    file: str
    kernels: str
    programs: int
    run: Launch
    note: str = ""


def _own(node: Any, width: int = N) -> Any:
    return node.array([np.arange(width, dtype="float32") + 1000 * rank for rank in node.ranks])


def _gathered(kernel: str) -> Launch:
    def run(code: ModuleType, node: Any, seed: int, options: Options) -> bool:
        ranks, own = node.num_ranks, _own(node)
        out, flags = node.zeros(ranks * N), [] if kernel == "allgather_no_barrier_kernel" else [node.zeros(ranks, "int32")]
        node.launch(
            getattr(code, kernel), (4,), 0, out, own, N, node.rank_numbers, ranks, *flags, BLOCK, seed=seed, **options
        )
        return all((out[rank] == np.concatenate(list(own))).all() for rank in node.ranks)

    return run


def _gathered_by_tiles(code: ModuleType, node: Any, seed: int, options: Options) -> bool:
    ranks, rows, columns = node.num_ranks, 10, 48
    own = node.array([np.arange(rows * columns, dtype="float32").reshape(rows, columns) + 1000 * rank for rank in node.ranks])
    out, flags = node.zeros((ranks * rows, columns)), node.zeros(ranks, "int32")
    node.launch(
        code.allgather_strided_chunked_kernel, (3,), 0, out, own, rows, columns, columns, 1, node.rank_numbers, ranks, flags, 8, 16,
        1, seed=seed, **options,
    )
    return all((out[rank] == np.concatenate(list(own))).all() for rank in node.ranks)


def _put(code: ModuleType, node: Any, seed: int, options: Options) -> bool:
    ranks, own = node.num_ranks, _own(node, 512)
    target, signals = node.zeros(512), node.zeros(2, "int64")
    node.launch(
        code.p2p_put_kernel, (2,), own, target, [(rank + 1) % ranks for rank in node.ranks], 2048, signals, 7, seed=seed, **options
    )
    return all((target[rank] == own[rank - 1]).all() and (signals[rank] == 7).all() for rank in node.ranks)


def _copied(code: ModuleType, node: Any, seed: int, options: Options) -> bool:
    own = _own(node, 512)
    node.run([(0, code.p2p_copy_kernel, (2,), [own, 1, 2048], options)], seed=seed)
    return bool((own[0] == own[1]).all())


def _copied_on(code: ModuleType, node: Any, seed: int, options: Options) -> bool:
    own, target = _own(node, 512), node.zeros(512)
    node.run([(0, code.p2p_copy_remote_to_local_kernel, (2,), [own, 1, target, 2048, 2, BLOCK], options)], seed=seed)
    return bool((target[0] == own[1]).all())


def _signalled(code: ModuleType, node: Any, seed: int, options: Options) -> bool:
    ranks, signals = node.num_ranks, node.zeros(3, "int64")
    node.run([
        launch for rank in node.ranks for launch in (
            (rank, code.p2p_set_signal, (1,), [signals, (rank + 1) % ranks, 5, 3], options),
            (rank, code.p2p_wait_signal, (1,), [signals, rank, 5, 3], options),
        )
    ], seed=seed)
    return all((array == 5).all() for array in signals)


def _met(kernel: str, programs: int = 1) -> Launch:
    """A barrier that leaves its words as they were, or at the value that was given."""

    def run(code: ModuleType, node: Any, seed: int, options: Options) -> bool:
        ranks, me = node.num_ranks, node.rank_numbers
        flags = node.zeros(2 * ranks + 1, "int32")
        if kernel.startswith("barrier_all_intra_node_non_atomic"):
            more = [False] if programs > 1 else []
            node.launch(getattr(code, kernel), (programs,), me, me, ranks, flags, 3, *more, seed=seed, **options)
            return all((array[: 2 * ranks] == 3).all() for array in flags)
        if kernel == "barrier_all_intra_node_atomic_cas_block":
            node.launch(code.barrier_all_intra_node_atomic_cas_block, (1,), me, me, ranks, flags, seed=seed, **options)
        else:
            words = node.heap_bases + flags.offset if "_ipc_" in kernel else flags
            node.launch(getattr(code, kernel), (1,), me, ranks, words, seed=seed, **options)
        return all((array == 0).all() for array in flags)

    return run


def _parts(node: Any) -> Any:
    """Of each rank an array in which its own part alone is there."""
    part = np.arange(PART * node.num_ranks) // PART
    return node.array([np.where(part == rank, rank + 1, 0).astype("int32") for rank in node.ranks])


def _are_all_there(node: Any, array: Any) -> bool:
    return all((array[rank] == np.arange(PART * node.num_ranks) // PART + 1).all() for rank in node.ranks)


def _pulled(code: ModuleType, node: Any, seed: int, options: Options) -> bool:
    ranks, array, signals = node.num_ranks, _parts(node), node.zeros(node.num_ranks, "int64")
    node.launch(
        code._forward_pull_kernel, (ranks,), array, PART * 4, signals, ranks, node.rank_numbers, 5, seed=seed, **options
    )
    return _are_all_there(node, array)


def _pushed_in_two_nodes(code: ModuleType, node: Any, seed: int, options: Options) -> bool:
    ranks, array, signals = node.num_ranks, _parts(node), node.zeros(node.num_ranks, "int64")
    node.launch(
        code._forward_push_2d_kernel, (ranks,), array, PART * 4, signals, 2, ranks, node.rank_numbers, 5, seed=seed, **options
    )
    return _are_all_there(node, array)


def _pushed_to_peers(code: ModuleType, node: Any, seed: int, options: Options) -> bool:
    ranks, array, signals = node.num_ranks, _parts(node), node.zeros(node.num_ranks, "int64")
    node.launch(
        code.nvshmem_device_producer_p2p_put_block_kernel, (2,), array, signals, PART, 4, 1, node.rank_numbers, 1, ranks, seed=seed,
        **options,
    )
    return _are_all_there(node, array)


def _reduced_round_a_ring(code: ModuleType, node: Any, seed: int, options: Options) -> bool:
    ranks, part = node.num_ranks, 320
    own = _own(node, part * ranks)
    ready, partial, flags, counters = node.full(ranks, 1, "int32"), node.zeros(part * ranks), *(
        node.zeros(ranks, "int32") for _ in range(2)
    )
    out = node.zeros(part)
    node.launch(
        code.reduce_scatter_ring_push_1d_intra_node_kernel, (2,), node.rank_numbers, ranks, own, ready, partial, flags, counters,
        out, part, 128, False, seed=seed, **options,
    )
    wanted = np.sum(list(own), 0).reshape(ranks, part)
    return all((out[rank] == wanted[rank]).all() for rank in node.ranks)


def _reduced_in_one_shot(code: ModuleType, node: Any, seed: int, options: Options) -> bool:
    ranks, own, out = node.num_ranks, _own(node), node.zeros(N)
    signals, buffer, grid = node.zeros(ranks, "int64"), node.zeros(ranks * N), node.zeros(1, "int32")
    node.launch(
        code.allreduce_one_shot_push_intra_node_kernel, (2,), own, out, signals, buffer, grid, node.rank_numbers, ranks, N, BLOCK,
        False, seed=seed, **options,
    )
    return all((out[rank] == np.sum(list(own), 0)).all() for rank in node.ranks)


def _product_reduced(code: ModuleType, node: Any, seed: int, options: Options) -> bool:
    """A product whose tiles another launch on each rank adds up as they come."""
    side, depth, tile, ranks = 64, 32, 32, node.num_ranks
    make = np.random.default_rng(0)
    a, b = (node.array([make.standard_normal((side, depth)).astype("float16") for _ in node.ranks]) for _ in range(2))
    c, signals = node.zeros((side, side), "float16"), node.zeros((side // tile) ** 2 * ranks, "int32")
    node.run([
        launch for rank in node.ranks for launch in (
            (rank, code.kernel_persistent_gemm_notify_ar, (2,), [
                a, b, c, signals, side, side, depth, depth, 1, depth, 1, side, 1, tile, tile, 32, 4, 2,
            ], options),
            (rank, code.consumer_all_reduce_kernel, (2,), [c, signals, side, side, side, 1, tile, tile, 4, 2], options),
        )
    ], seed=seed)
    wanted = sum(x.astype("float64") @ y.astype("float64").T for x, y in zip(a, b, strict=True))
    return all(np.allclose(array, wanted, rtol=4e-3, atol=3e-2) for array in c)


def _tokens_exchanged(code: ModuleType, node: Any, seed: int, options: Options) -> bool:
    """Rows for each expert to the rank that has it."""
    ranks, experts, hidden, most = node.num_ranks, 2, 64, 16
    splits = np.random.default_rng(1).integers(0, 5, (ranks, ranks * experts))
    begins = np.concatenate([np.zeros((ranks, 1), int), np.cumsum(splits, 1)], 1).astype("int32")
    rows = node.array([np.arange(most * ranks * hidden).reshape(-1, hidden).astype("float16") + rank for rank in node.ranks])
    there, counts = node.zeros((2, ranks * most, hidden), "float16"), node.zeros((2, ranks * experts), "int32")
    own, signals, nothing = node.zeros(ranks * experts, "int32"), node.zeros(2 * ranks, "int64"), node.zeros(1)
    node.launch(
        code.all_to_all_kernel, (ranks,), rows, there, own, counts, signals, [begins[rank] for rank in node.ranks], nothing,
        nothing, node.rank_numbers, 3, WITH_SCALE=False, WORLD_SIZE=ranks, HIDDEN=hidden, MAX_M=most, EXPERTS_PER_RANK=experts,
        NUM_TOT_EXPERTS=ranks * experts, ELEMENT_SIZE=2, seed=seed, **options,
    )
    for here in node.ranks:
        for sender in node.ranks:
            first, last = begins[sender][here * experts], begins[sender][(here + 1) * experts]
            got = there[here][1, sender * most:][: last - first]
            if not (got == rows[sender][first:last]).all():
                return False
            if not (counts[here][1].reshape(ranks, experts)[sender] == splits[sender].reshape(ranks, experts)[here]).all():
                return False
    return True


_LAST = "programs count by atomics that release and do not acquire, and the last one publishes what the others stored"
EXAMPLES = (
    Example("nvidia/p2p.py", "p2p_put_kernel", 2, _put),
    Example("nvidia/p2p.py", "p2p_copy_kernel", 2, _copied),
    Example("nvidia/p2p.py", "p2p_copy_remote_to_local_kernel", 2, _copied_on),
    Example("nvidia/p2p.py", "p2p_set_signal, p2p_wait_signal", 1, _signalled),
    Example("nvidia/common_ops.py", "barrier_all_intra_node_atomic_cas_block", 1, _met("barrier_all_intra_node_atomic_cas_block")),
    Example("nvidia/common_ops.py", "barrier_all_intra_node_non_atomic_block", 1, _met("barrier_all_intra_node_non_atomic_block")),
    Example("nvidia/common_ops.py", "barrier_all_intra_node_non_atomic", 2, _met("barrier_all_intra_node_non_atomic", 2)),
    Example("nvidia/low_latency_allgather.py", "_forward_pull_kernel", 0, _pulled),
    Example("nvidia/low_latency_allgather.py", "_forward_push_2d_kernel", 0, _pushed_in_two_nodes),
    Example("nvidia/allgather.py", "nvshmem_device_producer_p2p_put_block_kernel", 2, _pushed_to_peers),
    Example("nvidia/reduce_scatter.py", "reduce_scatter_ring_push_1d_intra_node_kernel", 2, _reduced_round_a_ring, _LAST),
    Example("nvidia/allreduce.py", "allreduce_one_shot_push_intra_node_kernel", 2, _reduced_in_one_shot),
    Example("amd/allgather.py", "allgather_no_barrier_kernel", 4, _gathered("allgather_no_barrier_kernel")),
    Example("amd/allgather.py", "allgather_kernel", 4, _gathered("allgather_kernel")),
    Example("amd/allgather.py", "allgather_strided_chunked_kernel", 3, _gathered_by_tiles),
    Example("amd/common_ops.py", "barrier_all_kernel", 1, _met("barrier_all_kernel")),
    Example("amd/common_ops.py", "barrier_all_kernel_v2", 1, _met("barrier_all_kernel_v2")),
    Example("amd/common_ops.py", "barrier_all_ipc_kernel", 1, _met("barrier_all_ipc_kernel")),
    Example("amd/common_ops.py", "barrier_all_ipc_kernel_v2", 1, _met("barrier_all_ipc_kernel_v2")),
    Example("amd/gemm_allreduce.py", "kernel_persistent_gemm_notify_ar, consumer_all_reduce_kernel", 2, _product_reduced),
    Example("amd/low_latency_all_to_all.py", "all_to_all_kernel", 0, _tokens_exchanged),
)
