"""Gluon's PTX of a copy in the mode im2col gives the patches that the definition of a convolution has, with every check."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

from oracles.chips import SM90A
from oracles.corpus import TRITON_VERSION
from oracles.execute import parse
from tilefw.api import ALL_CHECKS, BufferView, LaunchOptions, Scalar
from tilefw_nvidia.chips import named
from tilefw_nvidia.simulate.device import Simulator


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason=f"triton=={TRITON_VERSION} is not installed")
def test_pixels_that_gluon_asks_for_are_those_that_a_convolution_reads() -> None:
    from ptx_oracles import gluon

    made = gluon.pixels()
    device = Simulator(named("sm_90a"))
    x = np.random.default_rng(3).standard_normal((2, 8, 9, 64)).astype(np.float16)
    source, out = device.allocate(x.nbytes), device.allocate(2 * gluon.PIXELS * gluon.CHANNELS)
    device.write(source, x.view(np.uint8).data)
    # A filter of 3 x 3 on an image with one pixel around it: as many outputs as pixels.
    described = device.pixel_map(
        BufferView(source), x.shape[::-1], x.strides[-2::-1], ((-1, -1), (-1, -1)), gluon.CHANNELS, gluon.PIXELS, element="f16",
        swizzle=made.metadata.tensordesc_meta[0]["swizzle"],
    )
    first = 60  # output pixel: row 6, column 6 of the first image
    arguments = [
        described, Scalar(0, "i32"), Scalar(0, "i32"), Scalar(0, "i64"), Scalar(0, "i64"), BufferView(out), Scalar(16, "i32"),
        Scalar(6 - 1, "i32"), Scalar(6 - 1, "i32"), Scalar(0, "i32"), Scalar(0, "i64"), Scalar(0, "i64"),
    ]
    artifact = parse(made.asm["ptx"], made.metadata.name, SM90A)
    options = LaunchOptions(block=(128, 1, 1), dynamic_shared=made.metadata.shared, checks=ALL_CHECKS)
    report = device.launch(device.load(artifact), made.metadata.name, (1, 1, 1), arguments, options)
    assert report.findings == ()
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    rows, columns = np.indices((8, 9)).reshape(2, -1)
    patches = padded[:, rows + 1, columns + 2].reshape(-1, 64)[first : first + gluon.PIXELS, 16 : 16 + gluon.CHANNELS]
    got = np.frombuffer(device.read(out, 2 * gluon.PIXELS * gluon.CHANNELS), np.float16)
    np.testing.assert_array_equal(got.reshape(patches.shape), patches)
