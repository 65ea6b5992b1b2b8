"""Atomics: the chip's own instructions, cache actions and waits as LLVM's memory model has them; right in any schedule."""

from __future__ import annotations

import numpy as np
import pytest
from served import CHIPS

import tilefw
import tilefw.language as tl
from tilefw.kernels.atomic_mix import atomic_mix, function
from tilefw.testing import contention

on_each_chip = pytest.mark.parametrize("target", [chip.target for chip in CHIPS])
_MODIFIERS = ("sc0", "sc1", "vmcnt(0)")


def told(text: str, *starts: str) -> list[str]:
    """The instructions of a listing that start so, as opcode and modifiers."""
    lines = [line.strip().partition(" ") for line in text.splitlines()]
    return [
        " ".join([opcode, *(word for word in operands.split() if word in _MODIFIERS)])
        for opcode, _, operands in lines if opcode.startswith(starts)
    ]


@pytest.mark.parametrize(("operation", "name", "opcode"), [
    ("add", "i32", "add"), ("add", "fp32", "add_f32"), ("add", "fp64", "add_f64"), ("add", "fp16", "pk_add_f16"),
    ("add", "bf16", "pk_add_bf16"), ("max", "i32", "smax"), ("min", "u32", "umin"), ("max", "i64", "smax_x2"),
    ("xchg", "fp32", "swap"), ("cas", "i64", "cmpswap_x2"), ("or", "i32", "or"),
])
@pytest.mark.parametrize("old", [False, True])
@on_each_chip
def test_the_chip_s_own_atomics_are_used(target: str, operation: str, name: str, opcode: str, old: bool) -> None:
    pointer = f"*{name}:16"
    signature = {"x_ptr": pointer, "memory_ptr": pointer, "n": "i32:16", "cells": "i32"}
    constexprs = {
        "FUNCTION": function(operation), "ORDER": "relaxed", "SCOPE": "gpu", "MASK": "none", "SCALAR": False, "BLOCK": 256,
    }
    for argument, there in (("compare_ptr", operation == "cas"), ("old_ptr", old)):
        (signature if there else constexprs)[argument] = pointer if there else None
    text = tilefw.compile(atomic_mix, target=target, signature=signature, constexprs=constexprs, num_warps=4).text
    assert told(text, "global_atomic") == [f"global_atomic_{opcode}{' sc0' if old else ''}"]


@tilefw.jit
def last_half(memory_ptr, old_ptr):
    old = tl.atomic_cas(memory_ptr + 2, tl.full((), 0, tl.float16), tl.full((), 3, tl.float16))
    tl.store(old_ptr, old)


@on_each_chip
def test_the_last_half_of_an_odd_number_is_changed_within_a_word_that_the_array_does_not_fill(target: str) -> None:
    memory, old = np.array([1, 2, 0], np.float16), np.full(1, 7, np.float16)
    last_half[(1,)](memory, old, target=target)
    assert (memory.tolist(), old.tolist()) == ([1, 2, 3], [0])


@tilefw.jit
def published(data_ptr, flag_ptr, in_ptr, out_ptr, ORDER: tl.constexpr, SCOPE: tl.constexpr, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    tl.store(data_ptr + index, index)
    tl.atomic_add(flag_ptr + index, 1, sem=ORDER, scope=SCOPE)
    tl.store(out_ptr + index, tl.load(in_ptr + index))


_WAIT, _STORE, _ADD, _LOAD = "s_waitcnt vmcnt(0)", "global_store_dword", "global_atomic_add", "global_load_dword"


@pytest.mark.parametrize(("order", "scope", "sequence"), [
    ("relaxed", "gpu", [_ADD]),
    ("relaxed", "sys", [f"{_ADD} sc1"]),
    ("acq_rel", "cta", ["s_barrier", _ADD, "s_barrier"]),
    ("release", "gpu", ["s_barrier", "buffer_wbl2 sc1", _WAIT, _ADD]),
    ("acquire", "gpu", [_ADD, _WAIT, "buffer_inv sc1", "s_barrier"]),
    ("acq_rel", "gpu", ["s_barrier", "buffer_wbl2 sc1", _WAIT, _ADD, _WAIT, "buffer_inv sc1", "s_barrier"]),
    ("acq_rel", "sys", ["s_barrier", "buffer_wbl2 sc0 sc1", _WAIT, f"{_ADD} sc1", _WAIT, "buffer_inv sc0 sc1", "s_barrier"]),
])
@on_each_chip
def test_cache_actions_and_waits_are_those_of_the_memory_model(target: str, order: str, scope: str, sequence: list[str]) -> None:
    """LLVM, AMDGPUUsage, "Memory Model gfx942", which is later chips' too: `atomicrmw` of each order and scope; barriers as
    one wave speaks for all."""
    signature = dict.fromkeys(("data_ptr", "flag_ptr", "in_ptr", "out_ptr"), "*i32:16")
    constexprs = {"ORDER": order, "SCOPE": scope, "BLOCK": 256}
    text = tilefw.compile(published, target=target, signature=signature, constexprs=constexprs, num_warps=4).text
    found = told(text, "global_", "buffer_", "s_barrier", "s_waitcnt")
    assert found == ["s_waitcnt", _STORE, *sequence, _LOAD, _WAIT, _STORE]


@on_each_chip
def test_a_swap_of_halves_is_a_loop_on_their_word_that_the_wave_leaves_together(target: str) -> None:
    signature = {"memory_ptr": "*fp16:16", "wins_ptr": "*i32:16"}
    text = tilefw.compile(contention.swapped, target=target, signature=signature, constexprs={"BLOCK": 64}, num_warps=1).text
    lines = [line.strip() for line in text.splitlines()]
    assert sum(line.startswith("global_atomic_cmpswap") for line in lines) == 1
    assert sum(line.startswith("s_cbranch") for line in lines) == 1


@pytest.mark.parametrize("name", contention.CHECKS)
@on_each_chip
def test_what_comes_out_is_the_same_in_any_schedule(target: str, name: str) -> None:
    seed, check = contention.CHECKS[name]
    with tilefw.target(target, checks="all", seed=seed):
        check()
