"""Atomics in PTX: sm_80's own instructions where it has them, loops where not, order as asked for; right in any schedule."""

from __future__ import annotations

import re

import pytest

import tilefw
from tilefw.kernels.atomic_mix import atomic_mix, function
from tilefw.testing import contention
from tilefw_nvidia.chips import Chip

TARGET = "nvidia-sm80"
_TELLING = ("atom.", "red.", "fence.", "bar.", "vote.", "ld.relaxed", "bra")


def listing(
    operation: str, name: str, order: str = "relaxed", scope: str = "gpu", *, old: bool = False, block: int = 128
) -> list[str]:
    """The opcodes of a kernel with one atomic that have to do with it; a thread has one element, or more of a larger block."""
    pointer = f"*{name}:16"
    signature = {"x_ptr": pointer, "memory_ptr": pointer, "n": "i32:16", "cells": "i32"}
    constexprs = {"FUNCTION": function(operation), "ORDER": order, "SCOPE": scope, "MASK": "none", "SCALAR": False, "BLOCK": block}
    for argument, there in (("compare_ptr", operation == "cas"), ("old_ptr", old)):
        (signature if there else constexprs)[argument] = pointer if there else None
    text = tilefw.compile(atomic_mix, target=TARGET, signature=signature, constexprs=constexprs, num_warps=4).text
    opcodes = (re.sub(r"^@!?%\w+ ", "", line.strip()).partition(" ")[0].rstrip(";") for line in text.splitlines())
    return [opcode for opcode in opcodes if opcode.startswith(_TELLING)]


@pytest.mark.parametrize(("operation", "name", "told"), [
    ("add", "fp32", "add.f32"), ("add", "fp64", "add.f64"), ("add", "fp16", "add.noftz.f16"), ("add", "i64", "add.u64"),
    ("max", "i32", "max.s32"), ("max", "u32", "max.u32"), ("min", "i64", "min.s64"), ("xor", "i32", "xor.b32"),
])
def test_an_access_whose_old_value_nobody_reads_is_a_reduction(operation: str, name: str, told: str) -> None:
    assert listing(operation, name) == [f"red.relaxed.gpu.global.{told}"]


@pytest.mark.parametrize(("operation", "name", "told"), [
    ("xchg", "fp32", "exch.b32"), ("cas", "i16", "cas.b16"), ("cas", "fp64", "cas.b64"), ("and", "i64", "and.b64"),
])
def test_old_values_come_with_an_atom(operation: str, name: str, told: str) -> None:
    assert listing(operation, name, old=True) == [f"atom.relaxed.gpu.global.{told}"]


@pytest.mark.parametrize(("order", "scope", "opcodes"), [
    ("relaxed", "cta", ["red.relaxed.cta.global.add.u32"]),
    ("release", "gpu", ["bar.sync", "red.release.gpu.global.add.u32"]),
    ("acquire", "sys", ["atom.acquire.sys.global.add.u32"]),
    ("acq_rel", "gpu", ["bar.sync", "atom.acq_rel.gpu.global.add.u32"]),
])
def test_one_access_has_its_order_itself(order: str, scope: str, opcodes: list[str]) -> None:
    """`red` takes no acquire. A thread's release is the program's: all threads have met before."""
    assert listing("add", "i32", order, scope) == opcodes


def test_several_accesses_are_relaxed_between_two_fences() -> None:
    found = listing("add", "i32", "acq_rel", block=512)
    assert found == ["bar.sync", "fence.acq_rel.gpu", *["red.relaxed.gpu.global.add.u32"] * 4, "fence.acq_rel.gpu"]


def test_what_sm_80_has_no_instruction_for_is_a_loop_that_the_warp_leaves_together() -> None:
    found = listing("add", "bf16", "release", block=256)
    assert found == [
        "bar.sync", "fence.acq_rel.gpu", "ld.relaxed.gpu.global.b16", "ld.relaxed.gpu.global.b16",
        "atom.relaxed.gpu.global.cas.b16", "atom.relaxed.gpu.global.cas.b16", "vote.sync.any.pred", "bra",
    ]


@pytest.mark.parametrize(("name", "told"), [
    ("fp16", "red.relaxed.gpu.global.add.noftz.f16x2"), ("bf16", "atom.relaxed.gpu.global.cas.b32"),
])
def test_sums_of_neighbours_are_one_access(name: str, told: str) -> None:
    signature = {"x_ptr": f"*{name}:16", "sum_ptr": f"*{name}:16", "start": "i32:16"}
    text = tilefw.compile(contention.row, target=TARGET, signature=signature, constexprs={"BLOCK": 256}, num_warps=1).text
    assert text.count(told) == 4 and "b16 " not in text


@pytest.mark.parametrize("name", contention.CHECKS)
def test_what_comes_out_is_the_same_in_any_schedule(name: str, chip: Chip) -> None:
    seed, check = contention.CHECKS[name]
    with tilefw.target(chip.target, checks="all", seed=seed):
        check()
