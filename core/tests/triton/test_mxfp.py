"""Microscaling tensors hold the codes that the formats define."""

from __future__ import annotations

from typing import Any

import pytest

from tilefw.triton.mxfp import MXFP4Tensor, MXScaleTensor

torch: Any = pytest.importorskip("torch")


def test_elements_round_to_nearest_even_and_saturate() -> None:
    given = torch.tensor([0.0, -0.0, 0.25, 0.2501, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0, 5.01, -7.0, float("inf"), float("nan")])
    expected = torch.tensor([0.0, -0.0, 0.0, 0.5, 1.0, 1.0, 2.0, 2.0, 4.0, 4.0, 6.0, -6.0, 6.0, 6.0])
    assert torch.equal(MXFP4Tensor(given).to(torch.float32), expected)
    every = torch.arange(16, dtype=torch.uint8)
    tensor = MXFP4Tensor(size=16)
    tensor.data = every
    assert torch.equal(MXFP4Tensor(tensor.to(torch.float32)).data, every)


@pytest.mark.parametrize(("shape", "dim"), [((4, 6), 0), ((4, 6), 1), ((3, 5), 0), ((3, 5), 1), ((2, 3, 7), 1)])
def test_packing_is_undone_by_unpacking(shape: tuple[int, ...], dim: int) -> None:
    tensor = MXFP4Tensor(size=shape).random()
    packed = tensor.to_packed_tensor(dim)
    assert packed.shape[dim] == (shape[dim] + 1) // 2
    assert torch.equal(packed.select(dim, 0) & 15, tensor.data.select(dim, 0))
    assert torch.equal(tensor.unpack_packed_tensor(packed, dim, shape), tensor.data)


def test_scales_are_powers_of_two() -> None:
    given = torch.tensor([1.0, 1.9, 0.5, 3.0, 2.0**-140, 2.0**127, 0.0, -1.0, float("inf")])
    scales = MXScaleTensor(given)
    assert scales.data.tolist() == [127, 127, 126, 128, 0, 254, 255, 255, 255]
    assert scales.to(torch.float32)[:4].tolist() == [1, 1, 0.5, 2] and scales.to(torch.float32)[-1].isnan()
    drawn = MXScaleTensor(size=(64,)).random(low=0.25, high=4).data
    assert int(drawn.min()) >= 125 and int(drawn.max()) <= 129


def test_the_codes_are_tritons() -> None:
    theirs: Any = pytest.importorskip("triton.tools.mxfp")
    values = torch.cat([torch.randn(500), 4 * torch.randn(500)])
    assert torch.equal(MXFP4Tensor(values).data, theirs.MXFP4Tensor(values.clone()).data)
    assert torch.equal(MXScaleTensor(values).data, theirs.MXScaleTensor(values.clone()).data)
    torch.manual_seed(3)
    ours = MXFP4Tensor(size=(8, 3)).random().data, MXScaleTensor(size=9).random(low=0.5, high=16).data
    torch.manual_seed(3)
    assert torch.equal(ours[0], theirs.MXFP4Tensor(size=(8, 3)).random().data)
    assert torch.equal(ours[1], theirs.MXScaleTensor(size=9).random(low=0.5, high=16).data)
