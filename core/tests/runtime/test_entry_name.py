"""`jit(repr=…)` names the entry of machine code after the specialisation; `device_caches` has what was compiled."""

from __future__ import annotations

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
from tilefw.api.errors import CompileError
from tilefw.runtime.entry_name import SpecializationProxy


def named(proxy: SpecializationProxy) -> str:
    ones = "_".join(name for name, value in proxy.constants.items() if value == 1)
    return f"add_{proxy.signature['value']}_{proxy.constants['N']}_{ones}_{proxy.signature['N']}"


@tilefw.jit(repr=named)
def add(x_ptr, value, one, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(x_ptr + at, tl.load(x_ptr + at) + value + one)


@tilefw.jit(repr=lambda proxy: "3 words")
def unnamed(x_ptr):
    tl.store(x_ptr, 1)


@pytest.mark.parametrize(("value", "name"), [(7, "add_i32_4_one_constexpr"), (2**40, "add_i64_4_one_constexpr")])
def test_the_entry_is_named_after_the_specialisation(value: int, name: str) -> None:
    x = np.zeros(4, np.int64)
    result = add[(1,)](x, value, 1, N=4)
    assert result.name == result.kernel == name == result.artifact.entry().name
    assert (x == value + 1).all()


def test_a_name_that_machine_code_cannot_have_is_refused() -> None:
    with pytest.raises(CompileError, match="the repr of kernel `unnamed` gave '3 words'"):
        unnamed[(1,)](np.zeros(4, np.int32))


def test_device_caches_has_a_kernel_for_each_specialisation() -> None:
    @tilefw.jit
    def kernel(x_ptr, n):
        tl.store(x_ptr, n)

    kernels = kernel.device_caches[0][0]
    x = np.zeros(4, np.int32)
    assert not kernels
    for n in (3, 5, 3, 32):
        kernel[(1,)](x, n)
    assert len(kernels) == 2
    warm = kernel.warmup(x, 7, grid=(1,))
    assert warm in kernels.values() and len(kernels) == 2
    kernels.clear()
    kernel[(1,)](x, 3)
    assert [found.name for found in kernels.values()] == ["kernel"]
