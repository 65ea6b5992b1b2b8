"""Whether two programs are the same, their arrays to the byte."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tilefw_spatial.program import HostTensor, SpatialProgram


def _same_tensor(a: HostTensor, b: HostTensor) -> bool:
    arrays = [(a.data, b.data)]
    for x, y in zip(a.transfers, b.transfers, strict=True):
        arrays.append((x.explicit, y.explicit))
        assert (x.parameter, x.base, x.lanes, x.chunk, x.fill) == (y.parameter, y.base, y.lanes, y.chunk, y.fill)
        for u, v in zip(x.axes, y.axes, strict=True):
            assert (u.extent, u.vector, u.lane) == (v.extent, v.vector, v.lane)
            arrays += [(u.offsets, v.offsets), (u.valid, v.valid)]
    return (a.name, a.role, a.allocation) == (b.name, b.role, b.allocation) and all(_same_array(x, y) for x, y in arrays)


def _same_array(a: np.ndarray | None, b: np.ndarray | None) -> bool:
    if a is None or b is None:
        return a is b
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def assert_same(a: SpatialProgram, b: SpatialProgram) -> None:
    assert replace(a, tensors=()) == replace(b, tensors=())
    assert len(a.tensors) == len(b.tensors)
    assert all(_same_tensor(x, y) for x, y in zip(a.tensors, b.tensors, strict=True))
