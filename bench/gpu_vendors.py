"""What differs between the vendors whose cards are measured: tiles that are tried, libraries that are peers, the page's name."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import gpu_peers as peers

from tilefw.api import Device

PeersByName = Mapping[str, peers.Made]


@dataclass(frozen=True)
class CardSimulator:
    """A simulator of a target's code on a card of another chip, and the `note` that tells what it has of that chip's."""

    device: Device
    note: str


@dataclass(frozen=True)
class Vendor:
    """A vendor. Tiles are `MxNxK/warps/stages` and `MxN/warps/stages`; `triton_chip` is the chip whose code Triton is asked for as
    well, where its own choice for a card uses instructions that our target lacks. `simulator` makes the simulator of a target for
    a card of some chip, None where the target's own is right; `approximate` says which instructions of a code give what no manual
    tells to the bit, or nothing."""

    name: str
    page: str
    product_tiles: tuple[str, ...]
    attention_tiles: tuple[str, ...]
    products: Callable[[], PeersByName]
    attention: Callable[[bool], PeersByName]
    simulator: Callable[[str, str], CardSimulator | None]
    approximate: Callable[[str], str]
    triton_chip: str | None = None


def _with_sums_of(target: str, chip: str) -> CardSimulator | None:
    """A later card runs our target's PTX with the sums of its own matrix unit: Hopper adds 32 bytes of products at once and keeps
    25 bits below the largest exponent (MMA-Sim, arXiv 2511.10909, Hopper)."""
    from tilefw.runtime.plugins.loader import find_target
    from tilefw_nvidia.chips import chip_of
    from tilefw_nvidia.chips.chip import SumPrecision
    from tilefw_nvidia.simulate.device import Simulator

    later = {"sm_90": SumPrecision(bytes=32, fraction_bits=25)}.get(chip)
    own = chip_of(find_target(target).info)
    if later is None:
        return None
    sums = {element: later if one.fraction_bits else one for element, one in own.sums.items()}
    note = f"The simulator's matrix sums are those of {chip} as MMA-Sim (arXiv 2511.10909) has them."
    return CardSimulator(Simulator(replace(own, sums=sums)), note)


def _ptx_approximations(text: str) -> str:
    """PTX ISA tells the largest error of an approximation, and a chip's own value is within it."""
    found = sorted(set(re.findall(r"\b(\w+\.approx|div\.full)", text)))
    return "approximations of the chip: " + ", ".join(found) if found else ""


AMD = Vendor(
    name="AMD",
    page="gpu-amd.md",
    product_tiles=(
        "256x256x64/8", "256x128x64/8", "128x256x64/8", "128x128x64/8", "128x128x64/4", "128x128x32/4", "64x128x64/4",
    ),
    attention_tiles=("128x64/4", "128x128/8", "128x32/4", "64x64/4"),
    products=lambda: {"hipBLASLt": peers.blas("hipblaslt"), "CK": peers.blas("ck")},
    attention=lambda causal: {
        "PyTorch, AOTriton": peers.rocm_flash("aotriton", causal), "PyTorch, CK": peers.rocm_flash("ck", causal),
        "AITER": peers.aiter(causal),
    },
    simulator=lambda target, chip: None,
    approximate=lambda text: "",
)  # fmt: skip

NVIDIA = Vendor(
    name="NVIDIA",
    page="gpu.md",
    product_tiles=("128x256x32/8/3", "128x256x64/8/3", "128x128x32/4/4", "128x128x64/4/3", "256x128x32/8/3", "64x128x64/4/3"),
    attention_tiles=("128x64/4/2", "128x64/8/2", "128x32/4/3", "64x64/4/2"),
    products=lambda: {"cuBLASLt": peers.blas("cublaslt")},
    attention=lambda causal: {
        "PyTorch, FlashAttention-2": peers.attention_by("FLASH_ATTENTION", causal),
        "cuDNN": peers.attention_by("CUDNN_ATTENTION", causal),
    },
    simulator=_with_sums_of,
    approximate=_ptx_approximations,
    triton_chip="sm80",
)

VENDORS: Mapping[str, Vendor] = MappingProxyType({"amd": AMD, "nvidia": NVIDIA})
"""By the word of `TargetInfo.vendor`."""
