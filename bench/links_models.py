"""Which model plays a row: a library's collective, a kernel's own all-reduce, tokens to experts, or single transfers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from links_rows import Row
from published_points import CannotModelError

from tilefw.distributed.links.collectives import OPERATIONS, PlayedCollective, all_reduce_over_nodes, collective, direct_all_reduce
from tilefw.distributed.links.system import System
from tilefw.distributed.links.tokens import Routing

MIB = 1 << 20
Predicted = tuple[float, str]


def predicted(row: Row) -> Predicted:
    """The row's value by the model, and how; raises CannotModelError, CodeError."""
    if row.unit == "x speedup" or "GEMM" in row.op or "MLP" in row.op or "attention" in row.op or "rmsnorm" in row.op:
        raise CannotModelError("a kernel with computation beside its communication, whose shape or time alone is not in the row")
    system, nodes = row.place()
    for start, model in _LIBRARIES:
        if row.library.startswith(start):
            return model(row, system, nodes)
    raise CannotModelError(f"no model of {row.library}")


def _library(row: Row, system: System, nodes: int) -> Predicted:
    if "upper bound" in row.unit:
        raise CannotModelError("an upper bound is no measurement")
    if row.operation not in OPERATIONS:
        raise CannotModelError("the source does not name the operation")
    size = row.size or _large(row)
    if nodes > 1:
        if row.operation != "all_reduce":
            raise CannotModelError("of collectives over nodes, all-reduce alone is modelled")
        return _shown(row, all_reduce_over_nodes(system, nodes, size))
    # The page of these rows says that reduction in the switch is switched on for all sizes.
    algorithm = "in-switch" if "NVLS on" in row.op and "switch_rate" in system else ""
    return _shown(row, collective(system, row.operation, row.ranks, size, algorithm))


def _large(row: Row) -> float:
    """The size of a row that says "large": 8 GiB, where rates no longer change."""
    if "large" in row.op or "NVLS" in row.library:
        return 8192.0 * MIB
    raise CannotModelError("the row has no size")


def _shown(row: Row, found: PlayedCollective) -> Predicted:
    sized = row if row.size else replace(row, size=_large(row))
    choice = found.choice
    return sized.in_unit(found.microseconds), f"{choice.algorithm}, {choice.protocol}"


# vllm-project/vllm `all_reduce_utils.py`: MiB below which its own kernel is used by generation of the system's devices and ranks,
# and MiB below which symmetric memory is, in the switch for these numbers of ranks, else in two shots.
_VLLM_OWN = {"H": {2: 64, 4: 32, 6: 0.5, 8: 0.25}, "B": {2: 2, 4: 2, 6: 1, 8: 1}}
_VLLM_SYMMETRIC = {"H": {2: 64, 4: 32, 6: 64, 8: 64}, "B": {2: 8, 4: 32, 6: 128, 8: 128}}
_VLLM_SWITCH = {"H": (4, 6, 8), "B": (6, 8)}


def _torch(row: Row, system: System, nodes: int) -> Predicted:
    """The library's, called by the host for each collective: no shorter than what PyTorch's call takes there."""
    found, how = _library(row, system, nodes)
    return (max(found, system.least("torch_host_floor")), how) if row.unit == "us" else (found, how)


def _vllm(row: Row, system: System, nodes: int) -> Predicted:
    """vllm-project/vllm `csrc/custom_all_reduce.cuh`: one shot for two ranks, up to 512 KiB for four, up to 256 KiB for eight."""
    generation = "H" if "xH" in row.system else "B" if "B200" in row.system else ""
    size = row.size / MIB
    if size < _VLLM_OWN.get(generation, {}).get(row.ranks, 8):
        one = row.ranks == 2 or row.size <= (512 if row.ranks <= 4 else 256) << 10
        return _shown(row, direct_all_reduce(system, "one_shot" if one else "two_shot", row.ranks, row.size, "peers"))
    if size < _VLLM_SYMMETRIC.get(generation, {}).get(row.ranks, 0):
        switch = row.ranks in _VLLM_SWITCH[generation]
        shots, kernel = ("switch_shot", "multimem") if switch else ("two_shot", "symmetric")
        return _shown(row, direct_all_reduce(system, shots, row.ranks, row.size, kernel))
    return _library(row, system, nodes)


def _trt(row: Row, system: System, nodes: int) -> Predicted:
    """NVIDIA/TensorRT-LLM `allreduceOp.cpp`: one shot for two ranks up to 16 MB, below 1 MB for four, below 500 KB for eight."""
    if row.size < {2: 16e6, 4: 1e6}.get(row.ranks, 5e5):
        return _shown(row, direct_all_reduce(system, "one_shot", row.ranks, row.size, "lamport"))
    return _library(row, system, nodes)


def _named(algorithm: str, kernel: str) -> Callable[[Row, System, int], Predicted]:
    def model(row: Row, system: System, nodes: int) -> Predicted:
        return _shown(row, direct_all_reduce(system, algorithm, row.ranks, row.size, kernel))

    return model


def _packets(row: Row, system: System, nodes: int) -> Predicted:
    """microsoft/mscclpp: packets with flags in one shot, or two shots, whichever its tuning found shorter."""
    if not row.op.startswith("all_reduce"):
        return _single(row, system, nodes)
    shots = [
        direct_all_reduce(system, algorithm, row.ranks, row.size, kernel)
        for algorithm, kernel in (("one_shot", "packets"), ("two_shot", "puts"))
    ]
    best, how = _shown(row, min(shots, key=lambda one: one.microseconds))
    floor = system.least("host_floor") if "eager" in row.library else 0.0
    return max(best, floor), how


def _single(row: Row, system: System, _: int) -> Predicted:
    """One transfer between two devices, or of one device to all others."""
    word = row.op
    rates = {
        "put bidir": "put_rate", "get": "get_rate", "packets": "packet_put_rate", "bidirectional": "pair_both_rate",
        "H2D": "host_rate",
        "remote load max pair": "load_rate", "remote load min pair": "load_rate", "remote store": "store_rate",
        "remote atomic_add": "atomic_add_rate", "remote atomic_xchg": "atomic_xchg_rate", "all_load": "all_load_rate",
        "all_store": "all_store_rate", "remote load": "load_rate",
    }
    if "local" in word:
        raise CannotModelError("a device's own memory, which no link is part of")
    name = next((figure for start, figure in rates.items() if word.startswith(start)), None)
    if name is None:
        raise CannotModelError("no model of this transfer")
    rate = system[name]
    launch = system[f"{name}_launch"] if row.size else 0.0
    if row.unit == "us":
        return launch + row.size / rate, name
    unit = 1024**3 / 1e6 if row.unit == "GiB/s" else 1e3
    return (row.size / (launch + row.size / rate) if row.size else rate) / unit, name


def _deepep(row: Row, system: System, nodes: int) -> Predicted:
    if not row.numbers:
        return _deepep_rate(row, system, nodes)
    low, dispatch = "low-latency" in row.library, "dispatch" in row.op
    hidden = row.numbers["hidden"]
    # fp8 with a scale of four bytes for every 128 elements, and 16 bytes of indices; combined in bf16 (DeepEP README).
    a_copy = hidden + hidden / 32 + 16 if dispatch else 2 * hidden
    routing = Routing(row.numbers["tokens"], row.numbers["experts"], row.ranks, a_copy)
    return _tokens(row, system, ("low_" if low else "normal_") + ("dispatch" if dispatch else "combine"), routing)


def _tokens(row: Row, system: System, kernel: str, routing: Routing) -> Predicted:
    to_itself = kernel.startswith("two_sided")
    sent = routing.bytes_by_expert() if kernel.startswith("low_") else routing.bytes_by_rank(to_itself)
    floor = system.least(f"{kernel}_floor")
    return row.in_unit(max(floor, system[f"{kernel}_launch"] + sent / system[f"{kernel}_rate"])), kernel


def _deepep_rate(row: Row, system: System, nodes: int) -> Predicted:
    """Rates of large batches: of the port within a node; over nodes, of the part of the copies that leave the node."""
    if nodes == 1:
        return system["normal_plateau"] / 1e3, "plateau of a port"
    if row.unit == "us":
        raise CannotModelError("the latency of network cards to experts is not modelled")
    count = row.ranks // 8
    share = 1.0 if "v1" in row.op else count / (count - 1)  # the first version counts the bytes of cards alone
    return system["card_one_rate"] / 1e3 * share, "rate of a card by the share of copies that leave the node"


def _trt_exchange(row: Row, system: System, _: int) -> Predicted:
    routing = Routing(row.numbers["tokens"], row.numbers["experts"], row.ranks, 2 * row.numbers["hidden"])
    return _tokens(row, system, "two_sided_" + ("dispatch" if "dispatch" in row.op else "combine"), routing)


_LIBRARIES: tuple[tuple[str, Callable[[Row, System, int], Predicted]], ...] = (
    ("NCCL", _library),
    ("nccl", _library),
    ("RCCL DDA", _named("two_shot", "puts")),
    ("RCCL (feature on)", _named("two_shot", "puts")),
    ("RCCL", _library),
    # NCCL of registered windows (`ncclCommWindowRegister`) has kernels of its own; large arrays take RSxLDMC_AGxSTMC, which loads
    # sums by multicast addresses and stores them by such (NVIDIA/nccl src/device/symmetric/all_reduce.cuh), as PyTorch's does.
    ("pynccl_symm", _named("switch_shot", "symmetric")),
    ("pynccl", _library),
    ("torch eager", _torch),
    ("vLLM custom_allreduce", _vllm),
    ("vLLM_ca1shot", _named("one_shot", "eager_one")),
    ("vLLM_ca2shot", _named("two_shot", "eager_two")),
    ("TRT-LLM allreduce", _trt),
    ("TRT-LLM NVLinkTwoSided", _trt_exchange),
    ("symm_multimem", _named("switch_shot", "symmetric")),
    ("symm_two_shot", _named("two_shot", "symmetric")),
    ("symm_2shot", _named("two_shot", "symmetric")),
    ("fbgemm_2shot", _named("two_shot", "fbgemm")),
    ("fbgemm_1shot", _named("one_shot", "fbgemm")),
    ("MSCCL++ NVLS", _packets),
    ("MSCCL++", _packets),
    ("Triton-distributed double_tree", _named("two_shot", "double_tree")),
    ("DeepEP", _deepep),
    ("Iris", _single),
    ("p2p", _single),
    ("memcpy", _single),
)
