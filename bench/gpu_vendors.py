"""What differs between the vendors whose cards are measured: tiles that are tried, libraries that are peers, the page's name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import gpu_peers as peers

PeersByName = Mapping[str, peers.Made]


@dataclass(frozen=True)
class Vendor:
    """A vendor. Tiles are `MxNxK/warps/stages` and `MxN/warps/stages`; `triton_chip` is the chip whose code Triton is asked for as
    well, where its own choice for a card uses instructions that our target lacks."""

    name: str
    page: str
    product_tiles: tuple[str, ...]
    attention_tiles: tuple[str, ...]
    products: Callable[[], PeersByName]
    attention: Callable[[bool], PeersByName]
    triton_chip: str | None = None


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
    triton_chip="sm80",
)

VENDORS: Mapping[str, Vendor] = MappingProxyType({"amd": AMD, "nvidia": NVIDIA})
"""By the word of `TargetInfo.vendor`."""
