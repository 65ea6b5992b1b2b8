"""Gluon's PTX for sm_90a of a list of pixels (im2col), as Triton compiles it without a card."""

from __future__ import annotations

from triton.backends.compiler import GPUTarget
from triton.compiler import CompiledKernel
from triton.compiler import compile as compiled
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon._runtime import GluonASTSource
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma

PIXELS, CHANNELS = 32, 32


@gluon.jit
def load_pixels(image, out, channel, column, row, number, registers: gl.constexpr):
    shared = gl.allocate_shared_memory(image.dtype, image.block_shape, image.layout)
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    mbarrier.expect(bar, image.block_type.nbytes)
    tma.async_load_im2col(image, [number, row, column, channel], [1, 2], bar, shared)
    mbarrier.wait(bar, 0)
    pixel = gl.arange(0, 32, gl.SliceLayout(1, registers))[:, None]
    gl.store(out + pixel * 32 + gl.arange(0, 32, gl.SliceLayout(0, registers))[None, :], shared.load(registers))


def pixels() -> CompiledKernel:
    """The kernel for fp16 and a swizzle of 64 bytes: the tap of row 1 and column 2."""
    layout = gl.NVMMASharedLayout(swizzle_byte_width=64, element_bitwidth=16, rank=2)
    numbers = dict.fromkeys(("channel", "column", "row", "number"), "i32")
    signature = {
        "image": f"tensordesc_im2col<fp16[{PIXELS},{CHANNELS}],{layout!r}>", "out": "*fp16", **numbers, "registers": "constexpr",
    }
    registers = gl.BlockedLayout([1, 8], [8, 4], [4, 1], [1, 0])
    return compiled(GluonASTSource(load_pixels, signature, {(6,): registers}), target=GPUTarget("cuda", 90, 32))
