"""A target that compiles for one launch learns of it: from a launch's arguments, or from what a caller states ahead of time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
from tilefw.api import BufferPlacement, CompileError, LaunchArguments, LaunchError, TargetInfo
from tilefw.api.target import BOUND_FACTS
from tilefw.passes.manager import PassManager
from tilefw.passes.pipeline import default_passes
from tilefw.runtime.arguments.bound_launch import launch_of, stated_launch
from tilefw.runtime.compilation.kernel_source import from_jit

BOUND = TargetInfo("made-up", "made", "up", "for one launch", "none:None", frozenset(), wants=BOUND_FACTS)
FREE = TargetInfo("made-up", "made", "up", "for every launch", "none:None", frozenset())
SIGNATURE = {"x_ptr": "*fp32:16", "n": "i32", "scale": "fp32", "one": "i32:1"}


@tilefw.jit
def scaled(x_ptr, n, scale, one, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < n
    tl.store(x_ptr + place, tl.load(x_ptr + place, mask=inside) * scale + tl.num_programs(0), mask=inside)


def test_a_launch_is_told_only_to_a_target_that_wants_it() -> None:
    values = {"x_ptr": np.zeros(8, np.float32), "n": 8}
    assert launch_of(FREE, values, (1, 1, 1)) is None
    assert stated_launch(FREE, SIGNATURE, None, {}, {}) is None
    assert launch_of(BOUND, values, (1, 1, 1)) == LaunchArguments((1, 1, 1), {"n": 8}, {"x_ptr": BufferPlacement(0, 0, 32)})


def test_views_of_one_array_name_one_storage() -> None:
    whole, other = np.zeros(16, np.float32), np.zeros(4, np.float32)
    found = launch_of(BOUND, {"a": whole[:8], "b": whole[8:], "c": other, "none": None}, (2, 1, 1))
    assert found is not None and not found.scalars
    a, b, c = (found.buffers[name] for name in "abc")
    assert a.storage == b.storage != c.storage
    assert (a.offset, b.offset, b.nbytes, c.offset, c.nbytes) == (0, 32, 64, 0, 16)


def test_typed_scalars_are_numbers() -> None:
    found = launch_of(BOUND, {"n": np.int32(5), "scale": np.float32(0.5)}, (1, 1, 1))
    assert found == LaunchArguments((1, 1, 1), {"n": 5, "scale": 0.5})


def test_what_is_not_stated_is_named() -> None:
    with pytest.raises(CompileError) as caught:
        stated_launch(BOUND, SIGNATURE, None, {"n": 5}, {})
    assert caught.value.code == "TFW0642"
    assert caught.value.note == "it lacks grid, scalars['scale'], extents['x_ptr']"


@pytest.mark.parametrize(("scalars", "extent", "code"), [
    ({"n": 2.5, "scale": 1.0}, 8, "TFW0324"), ({"n": 2**40, "scale": 1.0}, 8, "TFW0325"), ({"n": 5, "scale": "much"}, 8, "TFW0324"),
    ({"n": 5, "scale": 1.0}, "8 KiB", "TFW0324"), ({"n": 5, "scale": 1.0}, -8, "TFW0325"),
])
def test_what_is_stated_fits_its_parameter(scalars: dict[str, Any], extent: Any, code: str) -> None:
    with pytest.raises(LaunchError) as caught:
        stated_launch(BOUND, SIGNATURE, 5, scalars, {"x_ptr": extent})
    assert caught.value.code == code


def test_a_stated_launch_says_all() -> None:
    stated = stated_launch(BOUND, SIGNATURE, 5, {"n": 5000, "scale": 2.0, "more": 1}, {"x_ptr": 20000})
    assert stated == LaunchArguments((5, 1, 1), {"n": 5000, "scale": 2.0}, {"x_ptr": BufferPlacement(0, 0, 20000)})


def test_the_module_of_one_launch_holds_its_numbers() -> None:
    """Scalars, the grid's extents and the only program id are constants, floats rounded to their parameter's type."""
    module = from_jit(scaled, SIGNATURE, {"BLOCK": 16}).build()
    PassManager(default_passes(LaunchArguments((1, 1, 1), {"n": 7, "scale": 0.1}, {}))).run(module)
    text = str(module)
    assert "tile.program_id" not in text and "tile.num_programs" not in text
    assert "tile.constant 7 : i32" in text
    assert f"tile.constant {float(np.float32(0.1))!r} : tensor<16xf32>" in text
