"""Arguments that are read in one pass are those that are read one by one, and launches are told apart by the same differences."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
from tilefw.runtime.arguments.arrays import HostArray
from tilefw.runtime.arguments.kernel_parameter import KernelParameter
from tilefw.runtime.arguments.single_pass import Form, Reading, reading
from tilefw.runtime.arguments.specialization import read

WHOLE = np.zeros(256, np.float32)


@tilefw.jit(do_not_specialize_on_alignment=["y"])
def kernel(x, y: tl.const, n, wide: tl.int64, scale, flag, K: tl.constexpr):  # pyright: ignore[reportInvalidTypeForm]
    tl.store(x, tl.load(y))


def drawn(choice: random.Random) -> list[Any]:
    """Arguments of the kernel."""
    arrays = (
        WHOLE, WHOLE[4:], WHOLE[1:9], WHOLE[::2], np.zeros(8, np.int8), np.zeros((3, 5), np.float64), np.zeros(4, np.uint16), None,
    )
    numbers = (0, 1, 16, -5, 2**31 - 1, 2**31, -(2**31), 2**40, 2**63, True, None)
    constants = (0, 1, True, 0.0, -0.0, 1.0, "a", b"a", None, tl.float32)
    return [
        choice.choice(arrays), choice.choice(arrays), choice.choice(numbers), choice.choice((1, 16, 7, -3)),
        choice.choice((1.5, 2, 0.0)), choice.choice((True, False, 1)), choice.choice(constants),
    ]


def shown(values: Any) -> list[Any]:
    return [(a.dtype, a.address, a.start, a.nbytes, a.readonly) if isinstance(a, HostArray) else (type(a), repr(a)) for a in values]


def found(parameters: list[KernelParameter], given: list[Any], form: Form) -> tuple[Any, ...] | None:
    made: Reading | None = reading(parameters, tuple(map(type, given)), form)
    return None if made is None else made(given)


def test_both_ways_read_the_same_and_tell_the_same_apart() -> None:
    choice = random.Random(3)
    by_key: defaultdict[Any, set[str]] = defaultdict(set)
    for _ in range(1500):
        given = drawn(choice)
        single = found(kernel.params, given, "ready")
        if single is None:
            assert any(isinstance(a, np.ndarray) for a in given)
            continue
        key, values = read(kernel.params, given)
        assert shown(single[1]) == shown(values)
        arrays = [a for a in values if isinstance(a, HostArray)]
        assert (list(single[2]), list(single[3])) == ([a.start for a in arrays], [a.start + a.nbytes for a in arrays])
        by_key[tuple(map(type, given)), single[0]].add(repr(key))
        addresses = found(kernel.params, given, "host")
        assert addresses is not None and addresses[0] == single[0]
        assert shown(addresses[1]) == shown([a.address if isinstance(a, HostArray) else a for a in values])
    assert len(by_key) > 300 and all(len(keys) == 1 for keys in by_key.values())


def test_what_is_no_plain_array_is_left_to_others() -> None:
    fixed = WHOLE.copy()
    fixed.flags.writeable = False
    for array in (fixed, np.zeros(0, np.float32), np.zeros(4, ">f4"), np.zeros(4, "datetime64[s]"), np.zeros(4, np.complex64)):
        assert found(kernel.params, [array, WHOLE, 1, 1, 1.0, True, 1], "ready") is None
    assert found(kernel.params, [WHOLE, WHOLE, object(), 1, 1.0, True, 1], "ready") is None
    assert found(kernel.params, [b"a", WHOLE, 1, 1, 1.0, True, 1], "ready") is None
    assert found(kernel.params, [WHOLE, WHOLE, 1, 1, 1.0, True, np.sum], "ready") is None


def test_tensors_are_read_as_arrays_are() -> None:
    torch = pytest.importorskip("torch")
    whole = torch.zeros(256)
    derived = type("Derived", (torch.Tensor,), {})
    assert derived.__module__.partition(".")[0] != "torch"
    kinds = (whole.to(torch.bfloat16), torch.nn.Parameter(whole), whole.as_subclass(derived))
    for tensor in (whole, whole[4:], whole[1:], whole.view(16, 16).T, *kinds):
        given = [tensor, whole, 5, 16, 1.0, True, 1]
        single = found(kernel.params, given, "ready")
        key, values = read(kernel.params, given)
        assert single is not None and key is not None and shown(single[1]) == shown(values) and set(key) >= set(single[0])
        addresses = found(kernel.params, given, "host")
        assert addresses is not None and addresses[1][0] == tensor.data_ptr()
    negated = torch.zeros(4, dtype=torch.complex64).conj().imag
    for tensor in (negated, negated.as_subclass(derived), torch.zeros(4, device="meta"), whole.to_sparse()):
        assert found(kernel.params, [tensor, whole, 5, 16, 1.0, True, 1], "ready") is None


def test_tensors_elsewhere_are_all_on_one_device() -> None:
    torch = pytest.importorskip("torch")
    there, here = torch.zeros(4, device="meta"), torch.zeros(4)
    made = found(kernel.params, [there, there, 5, 16, 1.0, True, 1], "card")
    assert made is not None and made[0][-1] == made[4] == there.device
    assert found(kernel.params, [there, here, 5, 16, 1.0, True, 1], "card") is None
    assert found(kernel.params, [here, here, 5, 16, 1.0, True, 1], "card") is None
    assert found(kernel.params, [WHOLE, there, 5, 16, 1.0, True, 1], "card") is None


def test_an_object_that_says_only_now_that_it_is_on_no_card_is_left_to_others() -> None:
    """As an array does whose memory is the host's."""

    class Elsewhere:
        @property
        def __cuda_array_interface__(self) -> dict[str, Any]:
            raise AttributeError("not in a card's memory")

    assert reading(kernel.params, (Elsewhere, Elsewhere, int, int, float, bool, int), "card") is not None
    assert found(kernel.params, [Elsewhere(), Elsewhere(), 5, 16, 1.0, True, 1], "card") is None
