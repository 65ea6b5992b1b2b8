"""Iris's kernels, unchanged, on simulated nodes: `python bench/iris.py CHECKOUT [--out bench/iris.md] [--only NAME]`.

CHECKOUT is a copy of https://github.com/ROCm/iris as of July 2025 (examples 00 to 09). Each kernel runs on nodes of the
reference, sm_80 and gfx942, its results are compared with NumPy's, and a second time with all checks, whose codes the page shows.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import tilefw
from tilefw.api.errors import KernelError
from tilefw.triton.iris import IrisRank, all_ranks, device_functions, kernels

TARGETS = ("reference", "nvidia-sm80", "amd-cdna3")
N, BLOCK, SIDE, TILE = 4096, 512, 64, 32
PROGRAMS = N // BLOCK
BUDGET = 1 << 25  # instructions of all lanes of a launch; those that end take less than a tenth of it
Hosts = Sequence[IrisRank]
Launch = Callable[[ModuleType, Any, Hosts, dict[str, Any]], bool]


@dataclass(frozen=True)
class Example:
    """A kernel of a file, its ranks, and what launches it and says whether the results are right."""

    file: str
    kernel: str
    ranks: int
    run: Launch
    note: str = ""


def _loaded(code: ModuleType, node: Any, hosts: Hosts, options: dict[str, Any]) -> bool:
    """Each rank loads the next one's numbers."""
    source = [host.arange(N, dtype="float32") for host in hosts]
    result = [host.zeros(N, dtype="float32") for host in hosts]
    for rank, array in enumerate(source):
        array += rank
    ranks = len(hosts)
    node.run([
        (r, code.load_kernel, (PROGRAMS,), [source[r], result[r], N, r, (r + 1) % ranks, BLOCK, hosts[r].get_heap_bases()], options)
        for r in range(ranks)
    ])
    return all((result[r] == source[(r + 1) % ranks]).all() for r in range(ranks))


def _stored(code: ModuleType, node: Any, hosts: Hosts, options: dict[str, Any]) -> bool:
    target = [host.zeros(N, dtype="float32") for host in hosts]
    ranks = len(hosts)
    node.run([
        (r, code.store_kernel, (PROGRAMS,), [target[r], N, r, (r + 1) % ranks, BLOCK, hosts[r].get_heap_bases()], options)
        for r in range(ranks)
    ])
    return all((array == np.arange(N)).all() for array in target)


def _all_loaded(code: ModuleType, node: Any, hosts: Hosts, options: dict[str, Any]) -> bool:
    source, target = ([host.randn(N, dtype="float32") for host in hosts] for _ in range(2))
    ranks = len(hosts)
    node.run([
        (r, code.all_read_kernel, (PROGRAMS,), [source[r], target[r], r, N, ranks, BLOCK, hosts[r].get_heap_bases()], options)
        for r in range(ranks)
    ])
    return all(np.allclose(array, np.sum(source, 0), atol=1e-5) for array in target)


def _all_stored(code: ModuleType, node: Any, hosts: Hosts, options: dict[str, Any]) -> bool:
    target = [host.zeros(N, dtype="float32") for host in hosts]
    node.run([
        (r, code.all_store_kernel, (PROGRAMS,), [target[r], r, N, len(hosts), BLOCK, hosts[r].get_heap_bases()], options)
        for r in range(len(hosts))
    ])
    return all((array == np.arange(N)).all() for array in target)


def _atomic(name: str) -> Launch:
    """Every word of each rank becomes 1, by the rank before it."""

    def run(code: ModuleType, node: Any, hosts: Hosts, options: dict[str, Any]) -> bool:
        source, result = ([host.zeros(N, dtype="int32") for host in hosts] for _ in range(2))
        ranks = len(hosts)
        node.run([
            (r, getattr(code, name), (PROGRAMS,), [source[r], result[r], N, r, (r + 1) % ranks, BLOCK, hosts[r].get_heap_bases()],
             options)
            for r in range(ranks)
        ])
        return all((array == 1).all() for array in source)

    return run


def _passed(flags_of: int) -> Launch:
    """Rank 0 sends and rank 1 doubles what it was sent. The producer sets the flags of rank `flags_of`."""

    def run(code: ModuleType, node: Any, hosts: Hosts, options: dict[str, Any]) -> bool:
        source, target = ([host.randn(N, dtype="float32") for host in hosts] for _ in range(2))
        flags = [host.zeros(PROGRAMS, dtype="int32") for host in hosts]
        bases = hosts[0].get_heap_bases()
        node.run([
            (0, code.producer_kernel, (PROGRAMS,), [source[0], target[0], flags[flags_of], N, 0, 1, BLOCK, bases], options),
            (1, code.consumer_kernel, (PROGRAMS,), [target[1], flags[1], N, 1, BLOCK, bases], options),
        ])
        return bool((target[1] == 2 * source[0]).all())

    return run


def _product(kernel: str, columns: bool, terms: bool) -> Launch:
    """The product of whose B each rank has columns, or of which each has terms, on every rank."""

    def run(code: ModuleType, node: Any, hosts: Hosts, options: dict[str, Any]) -> bool:
        ranks = len(hosts)
        width = SIDE * ranks if columns else SIDE
        a, b = ([host.randn(SIDE, SIDE, dtype="float16") for host in hosts] for _ in range(2))
        c = [host.zeros(SIDE, SIDE, dtype="float32") for host in hosts]
        whole = [host.zeros(SIDE, width, dtype="float32") for host in hosts]
        tiles = (SIDE // TILE) ** 2
        done = [host.zeros(tiles, dtype="int32") for host in hosts]
        node.run([
            (r, getattr(code, kernel), (2,), [
                a[r], b[r], c[r], whole[r], None, None, None, done[r], SIDE, SIDE, SIDE, SIDE, 1, SIDE, 1, SIDE, 1, width, 1, 0,
                TILE, TILE, TILE, 1, 2, 0, 1, False, True, hosts[r].get_heap_bases(), r, ranks,
            ], options)
            for r in range(ranks)
        ])
        products = [x.astype(np.float64) @ y.astype(np.float64) for x, y in zip(a, b, strict=True)]
        wanted = np.concatenate(products, 1) if columns else np.sum(products, 0)
        return all(np.allclose(found, wanted, atol=1e-2 if terms else 1e-3) for found in whole)

    return run


_HANGS = "as written: the producer sets flags in its own heap, and the consumer waits for those in its"
_REPAIRED = "the kernels as written, launched with the address of the consumer's flags; the flags are plain stores, which race"
_NARROW = "atomics of several ranks to one word have the scope of a device, which orders none of another"
EXAMPLES = (
    Example("00_load/load_bench.py", "load_kernel", 2, _loaded),
    Example("01_store/store_bench.py", "store_kernel", 2, _stored),
    Example("02_all_load/all_load_bench.py", "all_read_kernel", 4, _all_loaded),
    Example("03_all_store/all_store_bench.py", "all_store_kernel", 4, _all_stored),
    Example("04_atomic_add/atomic_add_bench.py", "atomic_add_kernel", 2, _atomic("atomic_add_kernel")),
    Example("05_atomic_xchg/atomic_xchg_bench.py", "atomic_xchg_kernel", 2, _atomic("atomic_xchg_kernel")),
    Example("06_message_passing/message_passing_put.py", "producer_kernel, consumer_kernel", 2, _passed(0), _HANGS),
    Example("06_message_passing/message_passing_put.py", "producer_kernel, consumer_kernel", 2, _passed(1), _REPAIRED),
    Example("06_message_passing/message_passing_load_store.py", "producer_kernel, consumer_kernel", 2, _passed(1), _REPAIRED),
    Example(
        "07_gemm_all_scatter/gemm_all_scatter.py", "persistent_gemm_all_scatter", 2,
        _product("persistent_gemm_all_scatter", True, False),
    ),
    Example(
        "08_gemm_atomics_all_reduce/gemm_atomics_all_reduce.py", "persistent_gemm_all_reduce", 2,
        _product("persistent_gemm_all_reduce", False, True), _NARROW,
    ),
    Example(
        "09_gemm_one_shot_all_reduce/gemm_one_shot_all_reduce.py", "persistent_gemm_all_reduce", 2,
        _product("persistent_gemm_all_reduce", False, True),
    ),
)


def attempt(example: Example, code: ModuleType, target: str, checks: str) -> str:
    """What comes of one run: right, wrong, or the code of an error."""
    node = tilefw.node(target, example.ranks)
    try:
        right = example.run(code, node, all_ranks(node), {"budget": BUDGET, **({"checks": checks} if checks else {})})
    except KernelError as error:
        return str(error.code)
    return "right" if right else "wrong"


def main() -> int:
    parse = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parse.add_argument("checkout", type=Path)
    parse.add_argument("--out", type=Path, default=Path(__file__).with_name("iris.md"), help="the page to write")
    parse.add_argument("--only", default="", help="files whose names contain this; prints, writes no page")
    parse.add_argument("--targets", default=",".join(TARGETS))
    args = parse.parse_args()
    targets = args.targets.split(",")
    iris = device_functions(args.checkout)
    lines = []
    for example in (one for one in EXAMPLES if args.only in one.file):
        code = kernels(args.checkout / "examples" / example.file, iris)
        begin = time.process_time()
        found = [f"{attempt(example, code, target, '')} / {attempt(example, code, target, 'all')}" for target in targets]
        seconds = f"{time.process_time() - begin:.1f}"
        cells = [f"`{example.file}`", f"`{example.kernel}`", str(example.ranks), *found, seconds, example.note]
        lines.append("| " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)
    if not args.only:
        heads = ["file", "kernels", "ranks", *targets, "CPU seconds", "note"]
        table = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads), *lines]
        args.out.write_text(_PAGE + "\n".join(table) + "\n", encoding="utf-8")
    return 0


_PAGE = """# Iris's kernels on simulated nodes

`python bench/iris.py CHECKOUT` wrote this page. The kernels are those of [Iris](https://github.com/ROCm/iris), July 2025, and
so are the device functions that they call; nothing of them was changed. Each cell has two runs: results compared with NumPy's,
then the same with all checks. A code is an error that was told: TFW0870 a deadlock with who waits for what, TFW0446 and TFW0810 a
budget that a program which never ends has used up, TFW0444 and TFW0804 a race, on the reference and on machine code.

"""

if __name__ == "__main__":
    raise SystemExit(main())
