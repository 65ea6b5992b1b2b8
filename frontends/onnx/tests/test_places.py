"""The text of an offset is the offset: evaluated for every element number, it is where NumPy finds the element."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tilefw_onnx.lowerings.places import View, contiguous, next_power_of_2

SHAPES = st.lists(st.integers(1, 5), max_size=4).map(tuple)


def offsets(view: View) -> np.ndarray:
    """By the generated text, whose `//`, `%`, `*` and `+` mean in NumPy what they mean in a kernel."""
    index = np.arange(view.size)
    return np.broadcast_to(eval(view.offset("index"), {"index": index}), index.shape)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(SHAPES, st.data())
def test_any_view_is_where_numpy_has_it(shape: tuple[int, ...], data: st.DataObject) -> None:
    """Transposed, repeated along new and old axes, cut with steps forwards and backwards."""
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    axes = data.draw(st.permutations(range(len(shape))))
    view, seen = contiguous(shape).take(axes), array.transpose(axes)
    assert (offsets(view) == seen.reshape(-1)).all()
    if seen.ndim:
        step = data.draw(st.sampled_from([-2, -1, 1, 2]))
        extent, stride = view.dims[0]
        start = data.draw(st.integers(0, extent - 1))
        kept = range(start, extent if step > 0 else -1, step)
        view, seen = View(((len(kept), stride * step), *view.dims[1:]), start * stride), seen[list(kept)]
        assert (offsets(view) == seen.reshape(-1)).all()


@given(SHAPES, SHAPES)
def test_broadcasting_is_numpys(shape: tuple[int, ...], other: tuple[int, ...]) -> None:
    try:
        whole = np.broadcast_shapes(shape, other)
    except ValueError:
        return
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    assert (offsets(contiguous(shape).broadcast(whole)) == np.broadcast_to(array, whole).reshape(-1)).all()


def test_dims_that_continue_each_other_are_one() -> None:
    assert contiguous((2, 3, 4)).offset("i") == "i"
    assert contiguous((2, 3, 4)).take((1, 0, 2)).offset("i") == "(i // 8) * 4 + (i // 4 % 2) * 12 + i % 4"
    assert View(((2, 0), (3, 1))).offset("i") == "i % 3"
    assert View(((4, 0),), 7).offset("i") == "7"


@given(st.integers(0, 1000))
def test_the_next_power_of_two(n: int) -> None:
    power = next_power_of_2(n)
    assert power >= max(1, n) and power & (power - 1) == 0 and (power == 1 or power // 2 < n)
