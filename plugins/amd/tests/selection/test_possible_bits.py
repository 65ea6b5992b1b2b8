"""What may be set in words made of fields of the thread index: no value has other bits, and disjoint fields are summed."""

from __future__ import annotations

import random

import pytest
from served import ISA

from tilefw.api.machine import Function, FunctionAttributes
from tilefw.api.simt import Code, Const, Element
from tilefw_amd.select.lanes import AmdLanes
from tilefw_amd.select.possible_bits import disjoint, possible_bits

THREADS = 256
_COMPUTE = {
    "andi": lambda x, y: x & y, "ori": lambda x, y: x | y, "xori": lambda x, y: x ^ y, "addi": lambda x, y: (x + y) & 0xFFFFFFFF,
    "shl": lambda x, y: x << y & 0xFFFFFFFF, "shru": lambda x, y: x >> y,
}


def started() -> tuple[Code, Element]:
    chip = AmdLanes(ISA, True)
    code = Code(Function("kernel", ISA.chip.target, FunctionAttributes(workgroup=(THREADS, 1, 1))), chip)
    return code, chip.thread_id(code)


@pytest.mark.parametrize("seed", range(8))
def test_no_thread_has_a_bit_that_may_not_be_set(seed: int) -> None:
    rng = random.Random(seed)
    code, thread = started()
    words: list[tuple[Element, list[int]]] = [(thread, list(range(THREADS)))]
    for _ in range(40):
        row = rng.choice(sorted(_COMPUTE))
        x, of_x = rng.choice(words)
        constant = rng.randrange(12) if row in ("shl", "shru") else rng.getrandbits(9)
        y, of_y = (Const("i32", constant), [constant] * THREADS) if row[:2] == "sh" or rng.random() < 0.4 else rng.choice(words)
        found = code(f"{row}.i32", x, y)
        words.append((found, [_COMPUTE[row](a, b) for a, b in zip(of_x, of_y, strict=True)]))
    for word, values in words:
        assert not any(value & ~possible_bits(code, word) for value in values)


def test_exclusive_or_of_disjoint_fields_is_a_sum_and_of_others_is_not() -> None:
    code, thread = started()
    low, high = (code("andi.i32", thread, Const("i32", mask)) for mask in (0x0F, 0xF0))
    assert disjoint(code, low, high) and not disjoint(code, low, thread)
    for other, opcode in ((high, "v_add_u32"), (thread, "v_xor_b32")):
        code("xori.i32", low, other)
        assert code.block.insts[-1].opcode == opcode


def test_of_what_a_launch_does_not_bound_every_bit_may_be_set() -> None:
    chip = AmdLanes(ISA, True)
    code = Code(Function("kernel", ISA.chip.target), chip)
    assert possible_bits(code, chip.thread_id(code)) == 0xFFFFFFFF
