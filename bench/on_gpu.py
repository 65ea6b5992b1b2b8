"""Ten minutes on a machine with a card: the suite on the card, the simulator against the card bit by bit, products and attention
against the vendor's libraries and Triton; writes a page.

    python bench/on_gpu.py --amd                          # all of it, for the first AMD target that a card fits; gpu-amd.md
    python bench/on_gpu.py --nvidia                       # for the first of NVIDIA's targets whose code a card runs; gpu.md
    python bench/on_gpu.py --amd --part agreement         # one part: suite, programs, agreement, …
    python bench/on_gpu.py --amd --target amd-cdna4 --out page.md

Nothing but the vendor's driver library and tilefw with its plugins is needed. Peers that are not installed are told as such:
PyTorch brings the vendor's libraries (cuBLASLt, cuDNN; hipBLASLt and, where it was built with it, CK); Triton is the one beside
it. Exit code 1 where a part fails.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from gpu_agreement import agreement
from gpu_kernels import kernels
from gpu_launches import launches
from gpu_speed import attention, products
from gpu_suite import programs, suite
from gpu_vendors import VENDORS, Vendor

from tilefw.api import UnsupportedError
from tilefw.api.hardware import Card
from tilefw.runtime.executor import executor_for
from tilefw.runtime.plugins.listings import targets
from tilefw.runtime.plugins.loader import find_target

HERE = Path(__file__).parent
VERSIONS = ("tilefw-core", "tilefw-{vendor}", "numpy", "torch", "triton")


@dataclass(frozen=True)
class Asked:
    """What a run is to do: on which target and card, which cases of the suite, which kernels and sizes, how often each is timed."""

    vendor: str
    target: str
    card: Card
    level: str = "core"
    selection: str | None = None
    jobs: int = 8
    programs: int = 500
    kernels: tuple[str, ...] = ()
    sizes: tuple[int, ...] = (4096, 8192)
    lengths: tuple[int, ...] = (4096, 16384)
    heads: int = 32
    tiles: tuple[str, ...] = ()
    rounds: int = 20
    small: bool = False
    flush_bytes: int = 2 << 30  # what takes longer than a launch takes the host: events then have no gap between them


PARTS: dict[str, tuple[str, Callable[[Asked], tuple[list[str], bool]]]] = {
    "suite": ("The conformance suite on the card", suite),
    "programs": ("Random programs on the card", programs),
    "agreement": ("The simulator and the card, bit by bit", agreement),
    "products": ("Matrix products", products),
    "attention": ("Attention", attention),
    "kernels": ("Kernels that memory bounds", kernels),
    "launches": ("The host's time of a launch", launches),
}


def main(argv: Sequence[str]) -> int:
    said = _arguments(argv)
    vendor = next((name for name in VENDORS if getattr(said, name)), None)
    if vendor is None:
        print(f"say whose card it is: {', '.join(f'--{name}' for name in VENDORS)}", file=sys.stderr)
        return 2
    try:
        asked = _asked(said, vendor)
    except UnsupportedError as error:
        print(error, file=sys.stderr)
        return 1
    page, failed = [*_head(asked, VENDORS[vendor])], []
    for part in said.part or PARTS:
        title, run = PARTS[part]
        began = time.perf_counter()
        lines, well = run(asked)
        failed += [] if well else [part]
        page += ["", f"## {title}", "", *lines]
        print(f"{part}: {'passed' if well else 'FAILED'}, {time.perf_counter() - began:.0f} s", file=sys.stderr)
    out = Path(said.out or HERE / VENDORS[vendor].page)
    out.write_text("\n".join(page) + "\n", "utf-8")
    print(f"{out} is written" + (f"; failed: {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for vendor, facts in VENDORS.items():
        parser.add_argument(f"--{vendor}", action="store_true", help=f"a card of {facts.name}")
    parser.add_argument("--target", help="by default the first of the vendor's that a card fits")
    parser.add_argument("--part", action="append", choices=PARTS, help="only this part; may be given again")
    parser.add_argument("--out", help="the page")
    parser.add_argument("--level", default=Asked.level, help="of the suite")
    parser.add_argument("-k", dest="selection", help="which cases of the suite")
    parser.add_argument("--jobs", type=int, default=Asked.jobs, help="processes of the suite")
    parser.add_argument("--programs", type=int, default=Asked.programs, help="how many random programs")
    parser.add_argument("--kernel", action="append", default=[], help="of the library, for the agreement; by default every one")
    parser.add_argument("--size", action="append", type=int, default=[], help="of the products")
    parser.add_argument("--length", action="append", type=int, default=[], help="of the attention's sequences")
    parser.add_argument("--heads", type=int, default=Asked.heads, help="of the attention")
    parser.add_argument("--tile", action="append", default=[], help="MxNxK/warps/stages of products, MxN/warps/stages of attention")
    parser.add_argument("--rounds", type=int, default=Asked.rounds, help="how often each launch is timed")
    parser.add_argument("--small", action="store_true", help="memory-bound kernels at their small default sizes")
    parser.add_argument("--flush", type=int, default=Asked.flush_bytes, help="bytes that are written before each, to empty caches")
    return parser.parse_args(argv)


def _asked(said: argparse.Namespace, vendor: str) -> Asked:
    """Raises UnsupportedError where no card is there that fits."""
    names = [said.target] if said.target else [one.info.name for one in targets() if one.info.vendor == vendor]
    problems = []
    for name in names:
        try:
            device = executor_for(find_target(name), "hw").device
        except UnsupportedError as error:
            problems.append(error)
            continue
        assert isinstance(device, Card)
        asked = Asked(vendor, name, device, said.level, said.selection, said.jobs, kernels=tuple(said.kernel))
        chosen: dict[str, Any] = {"sizes": tuple(said.size), "lengths": tuple(said.length), "tiles": tuple(said.tile)}
        chosen = {field: value for field, value in chosen.items() if value}
        chosen |= {"programs": said.programs, "heads": said.heads, "rounds": said.rounds, "small": said.small}
        return replace(asked, flush_bytes=said.flush, **chosen)
    raise problems[0]


def _head(asked: Asked, vendor: Vendor) -> list[str]:
    info = asked.card.info
    versions = []
    for name in (word.format(vendor=asked.vendor) for word in VERSIONS):
        try:
            versions.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            versions.append(f"no {name}")
    needed = "; ".join(one.text for one in find_target(asked.target).backend.device_requirements() if one.met)
    return [
        f"# On {vendor.name}'s card: {info.name}", "",
        f"`{asked.target}` on card {info.number} ({info.chip}, {info.memory_bytes >> 30} GiB). Driver and cards: {needed}.",
        f"{', '.join(versions)}. Made by `python bench/on_gpu.py`.",
    ]


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
