"""A specialisation that a hook heard of is compiled again from its text (`jit_cache_hook` of `triton.knobs`, `kernel.preload`)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
from tilefw.api.errors import LaunchError
from tilefw.runtime import specialization_data
from tilefw.triton import knobs

Heard = list[dict[str, Any]]


def scaled(x_ptr, pair, TYPE: tl.constexpr, SIZES: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at).to(TYPE) * pair[0] + pair[1] + SIZES[0]
    tl.store(x_ptr + at, x.to(x_ptr.dtype.element_ty))


def applied(x_ptr, FUNCTION: tl.constexpr):
    tl.store(x_ptr, FUNCTION(3))


def asserting(x_ptr):
    tl.device_assert(tl.load(x_ptr) == 0)
    tl.store(x_ptr, 1.0)


@tilefw.constexpr_function
def doubled(x):
    return 2 * x


@pytest.fixture
def heard() -> Iterator[Heard]:
    found: Heard = []
    with knobs.runtime.scope():
        knobs.runtime.jit_cache_hook = lambda **words: found.append(words)
        yield found


def _launched(kernel: Any) -> np.ndarray:
    x = np.arange(16, dtype=np.float32)
    kernel[(1,)](x, (2.0, tl.constexpr(1)), TYPE=tl.float32, SIZES=(3, None), BLOCK=16, num_warps=2)
    return x


def test_another_kernel_object_compiles_the_text_to_the_same_code(heard: Heard) -> None:
    first, second = tilefw.jit(scaled), tilefw.jit(scaled)
    with tilefw.target("nvidia-sm80"):
        np.testing.assert_array_equal(_launched(first), np.arange(16) * 2 + 4)
        (words,) = heard
        _launched(first)
        assert len(heard) == 1  # what is known is not told again
        assert words["fn"].jit_function is first and not words["is_manual_warmup"]
        text = words["compile"]["specialization_data"]
        loaded = second.preload(text)
        assert [found.hash for found in first.device_caches[0][0].values()] == [loaded.hash]
        assert heard[-1]["key"] == words["key"] and heard[-1]["fn"].jit_function is second
        assert loaded in second.device_caches[0][0].values() and loaded.metadata.num_warps == 2


def test_a_true_answer_prevents_the_compilation_and_the_launch() -> None:
    kernel, answers = tilefw.jit(scaled), [True, False]
    with knobs.runtime.scope(), tilefw.target("reference"):
        knobs.runtime.jit_cache_hook = lambda **words: answers.pop(0)
        np.testing.assert_array_equal(_launched(kernel), np.arange(16))
        assert not kernel.device_caches[0][0] and len(answers) == 1
        np.testing.assert_array_equal(_launched(kernel), np.arange(16) * 2 + 4)
        np.testing.assert_array_equal(_launched(kernel), np.arange(16) * 2 + 4)
        assert not answers


def test_text_of_something_else_is_refused(heard: Heard) -> None:
    kernel = tilefw.jit(scaled)
    with tilefw.target("reference"):
        _launched(kernel)
        text = heard[0]["compile"]["specialization_data"]
        assert json.loads(text)["name"] == f"{__name__}.scaled"
        other = json.dumps({**json.loads(text), "name": "another"})
        for wrong, said in ((other, "is of kernel `another`"), ("{}", "no text of a specialisation"), ("[", "no text")):
            with pytest.raises(LaunchError, match=said) as caught:
                kernel.preload(wrong)
            assert caught.value.code == "TFW0353"
    with tilefw.target("nvidia-sm80"), pytest.raises(LaunchError, match="is for target 'reference'"):
        kernel.preload(text)


def test_a_target_that_compiles_for_one_launch_is_refused(heard: Heard) -> None:
    kernel = tilefw.jit(scaled)
    with tilefw.target("spatial-sdm1"):
        _launched(kernel)
        with pytest.raises(LaunchError, match="compiles for one launch, and the text of a specialisation says of none") as caught:
            kernel.preload(heard[0]["compile"]["specialization_data"])
        assert caught.value.code == "TFW0642" and "compile it ahead of time" in (caught.value.help or "")


def test_a_function_among_the_constants_has_no_text(heard: Heard) -> None:
    x = np.zeros(1, np.int32)
    with tilefw.target("reference"):
        tilefw.jit(applied).warmup(x, doubled, grid=(1,))
    assert heard[0]["compile"]["specialization_data"] is None and heard[0]["is_manual_warmup"]


def test_a_text_with_assertions_compiles_them(heard: Heard) -> None:
    with tilefw.target("nvidia-sm80"):
        tilefw.jit(asserting).warmup(np.zeros(1, np.float32), grid=(1,), debug=True)
        loaded = tilefw.jit(asserting).preload(heard[0]["compile"]["specialization_data"])
    assert loaded.asm["ptx"].count("trap") and heard[0]["key"] == heard[1]["key"]


def test_settings_that_are_put_back_are_there_all_the_time(heard: Heard) -> None:
    found: list[bool] = []

    class Leaving:
        def __del__(self) -> None:
            found.append(hasattr(knobs.runtime, "jit_cache_hook"))

    with knobs.runtime.scope():
        knobs.runtime.debug = Leaving()
    knobs.runtime.debug = Leaving()
    knobs.runtime.reset()
    del knobs.runtime.jit_cache_hook
    assert found == [True, True] and specialization_data.hook() is None
