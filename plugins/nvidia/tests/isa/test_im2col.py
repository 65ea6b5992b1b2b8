"""Lists of pixels by the copy engine (im2col): what a convolution reads for one tap of its filter, and what is refused."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from isa.hopper import CHIP, codes
from tilefw.api import ALL_CHECKS, Artifact, BufferView, Entry, Finding, LaunchError, LaunchOptions, Parameter
from tilefw_nvidia.simulate.device import Simulator

HEAD = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 .ptr .global out, .param .align 64 .b8 map[128])
{
.reg .b16 %h<8>; .reg .b32 %r<8>; .reg .b64 %d<8>; .reg .pred %p<2>;
.shared .align 1024 .b8 tile[16384];
.shared .align 8 .b64 bar;
mov.u32 %r0, %tid.x; setp.eq.u32 %p0, %r0, 0; mov.u32 %r1, tile; mov.u32 %r2, bar;
ld.param.u64 %d0, [out]; mov.b64 %d1, map; cvta.param.u64 %d1, %d1;
"""
LOAD = """@%p0 mbarrier.init.shared.b64 [%r2], 1;
fence.proxy.async.shared::cta; bar.sync 0;
@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r2], BYTES;
@%p0 cp.async.bulk.tensor.RANKd.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%r1], [%d1, {AT}], [%r2], {TAP};
again: mbarrier.try_wait.parity.shared.b64 %p1, [%r2], 0; @!%p1 bra again;
shl.b32 %r3, %r0, 2;
next: add.u32 %r4, %r3, %r1; ld.shared.u32 %r5, [%r4]; cvt.u64.u32 %d2, %r3; add.u64 %d3, %d0, %d2; st.global.u32 [%d3], %r5;
add.u32 %r3, %r3, 128; setp.lt.u32 %p1, %r3, BYTES; @%p1 bra next;
ret; }
"""

STORE = """shl.b32 %r3, %r0, 2;
next: add.u32 %r4, %r3, %r1; st.shared.u32 [%r4], %r3; add.u32 %r3, %r3, 128; setp.lt.u32 %p1, %r3, 1024; @%p1 bra next;
fence.proxy.async.shared::cta; bar.sync 0;
@%p0 cp.async.bulk.tensor.4d.global.shared::cta.im2col_no_offs.bulk_group [%d1, {8, 2, 1, 0}], [%r1];
@%p0 cp.async.bulk.commit_group;
@%p0 cp.async.bulk.wait_group 0;
ret; }
"""


@dataclass(frozen=True)
class Convolution:
    """Sizes with the innermost dimension last, without and with the images' number; `filter`, `padding`, `stride` and `dilation` of
    each dimension of space, and what one copy takes."""

    space: tuple[int, ...]
    filter: tuple[int, ...]
    padding: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    pixels: int
    images: int = 2
    channels: int = 24
    taken: int = 16
    swizzle: int = 0

    def outputs(self) -> list[tuple[int, ...]]:
        """The output's pixels in order."""
        facts = zip(self.space, self.filter, self.padding, self.stride, self.dilation, strict=True)
        sizes = [(size + 2 * pad - (taps - 1) * dilated - 1) // step + 1 for size, taps, pad, step, dilated in facts]
        return list(itertools.product(range(self.images), *map(range, sizes)))

    def expected(self, x: np.ndarray, first: int, channel: int, tap: Sequence[int]) -> np.ndarray:
        """By the definition of a convolution: for each output pixel what it multiplies with the filter's element `tap`."""
        rows = np.zeros((self.pixels, self.taken), x.dtype)
        for row, (image, *at) in zip(rows, self.outputs()[first:], strict=False):
            facts = zip(at, tap, self.padding, self.stride, self.dilation, strict=True)
            place = [o * step - pad + t * dilated for o, t, pad, step, dilated in facts]
            if all(0 <= p < size for p, size in zip(place, self.space, strict=True)):
                found = x[(image, *place)][channel : channel + self.taken]
                row[: len(found)] = found
        return rows


CASES = {
    "line": Convolution((11,), (3,), (1,), (1,), (1,), 16),
    "plane": Convolution((6, 7), (3, 3), (1, 1), (1, 1), (1, 1), 32, swizzle=2),
    "strided": Convolution((9, 8), (3, 2), (1, 0), (2, 3), (1, 1), 8, taken=8),
    "dilated": Convolution((7, 9), (2, 3), (2, 1), (1, 2), (3, 2), 16, swizzle=1, taken=8),
    "volume": Convolution((4, 5, 6), (2, 3, 2), (1, 1, 0), (1, 2, 1), (1, 1, 2), 24, images=3),
}


def run(
    of: Convolution, x: np.ndarray, first: int, channel: int, tap: Sequence[int], **changed
) -> tuple[np.ndarray, list[Finding]]:
    """The copy for the output pixels from number `first` on."""
    device = Simulator(CHIP)
    source, size = device.allocate(x.nbytes), of.pixels * of.taken * 4
    device.write(source, x.view(np.uint8).data)
    out = device.allocate(size)
    upper = [pad - (taps - 1) * dilated for pad, taps, dilated in zip(of.padding, of.filter, of.dilation, strict=True)]
    corners = ([-pad for pad in of.padding[::-1]], upper[::-1])
    described = device.pixel_map(
        BufferView(source), x.shape[::-1], x.strides[-2::-1], changed.get("corners", corners), of.taken, of.pixels, element="f32",
        swizzle=of.swizzle, steps=[1, *of.stride[::-1], 1],
    )
    image, *at = of.outputs()[first]
    start = [o * step - pad for o, step, pad in zip(at, of.stride, of.padding, strict=True)]
    moved = [t * dilated for t, dilated in zip(tap, of.dilation, strict=True)]
    coordinates = [channel, *changed.get("start", start)[::-1], image]
    text = HEAD + LOAD.replace("BYTES", str(size)).replace("RANK", str(x.ndim)).replace("AT", ", ".join(map(str, coordinates)))
    text = text.replace("TAP", ", ".join(map(str, moved[::-1])))
    parameters = (Parameter("out", "pointer", "uint8", 0, 8, 8), Parameter("map", "struct", "", 64, 128, 64))
    artifact = Artifact("nvidia-sm90a", "ptx", text, (Entry("k", parameters, (32, 1, 1)),))
    options = LaunchOptions(block=(32, 1, 1), checks=ALL_CHECKS)
    report = device.launch(device.load(artifact), "k", (1, 1, 1), [BufferView(out), described], options)
    got = np.frombuffer(device.read(out, size), np.float32)
    order = np.arange(len(got)) * 4
    got = got[(order ^ (((order >> 7) & ((1 << of.swizzle) - 1)) << 4)) // 4]
    return got.reshape(of.pixels, of.taken), list(report.findings)


def image(of: Convolution) -> np.ndarray:
    shape = (of.images, *of.space, of.channels)
    return np.arange(1, np.prod(shape) + 1, dtype=np.float32).reshape(shape)


@pytest.mark.parametrize("name", CASES)
def test_pixels_are_those_that_a_convolution_reads(name: str) -> None:
    of = CASES[name]
    x, outputs = image(of), len(of.outputs())
    last = tuple(taps - 1 for taps in of.filter)
    starts = (0, outputs // 3, outputs // 2, outputs - of.pixels // 2)  # the last list goes on behind the last image
    for first, tap, channel in zip(starts, ((0,) * len(last), last, (1,) * len(last), last), (0, 8, 16, 0), strict=True):
        got, findings = run(of, x, first, channel, tap)
        assert findings == []
        np.testing.assert_array_equal(got, of.expected(x, first, channel, tap))


def test_a_list_that_begins_outside_of_its_window_is_told() -> None:
    of = CASES["plane"]
    _, findings = run(of, image(of), 0, 0, (0, 0), start=(-1, -2))
    assert codes(findings) == {"TFW0825"} and "outside of the window" in findings[0].message


@pytest.mark.parametrize(
    ("corners", "found"), [(((0, 0), (0, 0)), set()), (((-1, 0), (0, 0)), {"TFW0825"}), (((0, 0), (0, 1)), {"TFW0825"})], ids=str
)
def test_pixels_are_stored_in_a_window_within_their_image(corners: tuple, found: set[str]) -> None:
    """32 pixels of 8 channels from pixel (1, 2) of the first image on; PTX ISA, "Restriction on Tensor Copy instructions"."""
    device, x = Simulator(CHIP), np.zeros((2, 5, 6, 16), np.uint32)
    image = device.allocate(x.nbytes)
    device.write(image, x.view(np.uint8).data)
    described = device.pixel_map(BufferView(image), x.shape[::-1], x.strides[-2::-1], corners, 8, 32, element="u32")
    parameters = (Parameter("out", "pointer", "uint8", 0, 8, 8), Parameter("map", "struct", "", 64, 128, 64))
    artifact = Artifact("nvidia-sm90a", "ptx", HEAD + STORE, (Entry("k", parameters, (32, 1, 1)),))
    options = LaunchOptions(block=(32, 1, 1), checks=ALL_CHECKS)
    report = device.launch(device.load(artifact), "k", (1, 1, 1), [BufferView(image), described], options)
    assert codes(report.findings) == found
    x.reshape(-1, 16)[8:40, 8:] = np.arange(256).reshape(32, 8) * 4
    assert found or np.array_equal(np.frombuffer(device.read(image, x.nbytes), np.uint32).reshape(x.shape), x)


def test_a_map_of_boxes_is_none_of_pixels() -> None:
    device = Simulator(CHIP)
    handle, out = device.allocate(4096), device.allocate(1024)
    described = device.tensor_map(BufferView(handle), (16, 4, 4, 4), (64, 256, 1024), (16, 4, 4, 1), element="f32")
    text = HEAD + LOAD.replace("BYTES", "1024").replace("RANK", "4").replace("AT", "0, 0, 0, 0").replace("TAP", "0, 0")
    parameters = (Parameter("out", "pointer", "uint8", 0, 8, 8), Parameter("map", "struct", "", 64, 128, 64))
    artifact = Artifact("nvidia-sm90a", "ptx", text, (Entry("k", parameters, (32, 1, 1)),))
    options = LaunchOptions(block=(32, 1, 1), checks=ALL_CHECKS)
    report = device.launch(device.load(artifact), "k", (1, 1, 1), [BufferView(out), described], options)
    assert codes(report.findings) == {"TFW0812"} and "one of boxes" in report.findings[0].message


@pytest.mark.parametrize(
    "changed",
    [
        {"sizes": (16, 4), "strides": (64,), "corners": ((), ())}, {"corners": ((0, 0), (0,))}, {"corners": ((0, -129), (0, 0))},
        {"channels": 257}, {"pixels": 1025}, {"element": "f8"},
    ],
    ids=str,
)
def test_what_a_map_of_pixels_cannot_say_is_refused(changed: dict) -> None:
    device = Simulator(CHIP)
    facts = {
        "sizes": (16, 4, 4, 4), "strides": (64, 256, 1024), "corners": ((0, 0), (0, 0)), "channels": 16, "pixels": 16,
        "element": "f32",
    }
    with pytest.raises(LaunchError) as refused:
        device.pixel_map(BufferView(device.allocate(4096)), **facts | changed)
    assert refused.value.code == "TFW0347"
