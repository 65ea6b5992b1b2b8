"""Atomics: the old values that the lanes of a warp see are those of some order, and the memory holds the sum of all."""

from __future__ import annotations

import numpy as np
import pytest

from isa.machine import launch


def atomics(code: str, memory: np.ndarray, target: str = "sm_80") -> tuple[np.ndarray, np.ndarray]:
    """32 lanes run the code, which may use %r0 (its lane), [%d0] and %r1 (the old value); gives memory and old values."""
    text = f""".version 8.1
.target {target}
.address_size 64
.visible .entry k(.param .u64 a0, .param .u64 a1)
{{
.reg .b32 %r<8>; .reg .b64 %d<4>; .reg .b16 %h<4>; .reg .f32 %f<4>;
mov.u32 %r0, %laneid;
ld.param.u64 %d0, [a0]; ld.param.u64 %d1, [a1];
mad.wide.u32 %d1, %r0, 4, %d1;
{code}
st.global.b32 [%d1], %r1;
ret;
}}
"""
    buffers, findings = launch(text, [memory, np.zeros(32, np.uint32)], 1, 32)
    assert findings == ()
    return np.frombuffer(buffers[0], memory.dtype), np.frombuffer(buffers[1], np.uint32)


@pytest.mark.parametrize(
    ("code", "before", "after"),
    [
        ("atom.global.add.u32 %r1, [%d0], 3;", 5, 5 + 96),
        ("atom.global.max.s32 %r1, [%d0], %r0;", -4, 31),
        ("atom.global.min.u32 %r1, [%d0], %r0;", 9, 0),
        ("atom.global.xor.b32 %r1, [%d0], 1;", 6, 6),
        ("atom.global.inc.u32 %r1, [%d0], 4;", 0, 32 % 5),
        ("atom.global.dec.u32 %r1, [%d0], 4;", 0, (-32) % 5),
    ],
)
def test_integer_operations(code: str, before: int, after: int) -> None:
    memory, _ = atomics(code, np.array([before], np.int64).astype(np.int32))
    assert memory.tolist() == [after]


def test_each_lane_sees_its_own_old_value() -> None:
    _, old = atomics("atom.global.add.u32 %r1, [%d0], 1;", np.array([100], np.int32))
    assert sorted(old.tolist()) == list(range(100, 132))


def test_compare_and_swap_lets_one_lane_win() -> None:
    memory, old = atomics("add.u32 %r2, %r0, 50;\natom.global.cas.b32 %r1, [%d0], 7, %r2;", np.array([7], np.int32))
    assert sorted(set(old.tolist())) == sorted({7, int(memory[0])})
    assert (old == 7).sum() == 1


def test_exchange_passes_every_value_on_once() -> None:
    memory, old = atomics("atom.global.exch.b32 %r1, [%d0], %r0;", np.array([99], np.int32))
    assert sorted([*old.tolist(), int(memory[0])]) == [*range(32), 99]


def test_floats_and_packed_halves() -> None:
    memory, _ = atomics("mov.f32 %f1, 0f3F000000;\nred.global.add.f32 [%d0], %f1;\nmov.u32 %r1, 0;", np.array([1.0], np.float32))
    assert memory.tolist() == [17.0]
    code = "mov.b32 %r2, 0x40003C00;\natom.global.add.noftz.f16x2 %r1, [%d0], %r2;"
    memory, _ = atomics(code, np.zeros(2, np.float16))
    assert memory.tolist() == [32.0, 64.0]


TINY = np.array([1], np.uint32).view(np.float32)[0]  # the smallest subnormal


@pytest.mark.parametrize("address", ["global.add.f32 %r1, [%d0]", "add.f32 %r1, [%d0]"])
def test_sums_of_f32_in_global_memory_flush_subnormal_operands_and_results(address: str) -> None:
    for before, addend, after in ((TINY, 0.0, 0.0), (-TINY, -0.0, -0.0), (0.0, TINY, 0.0), (1.5 * 2**-126, -(2**-126), 0.0)):
        bits = int(np.float32(addend).view(np.uint32))
        code = f"setp.eq.u32 %p0, %r0, 0;\nmov.b32 %r2, {bits};\nmov.u32 %r1, 0;\n@%p0 atom.{address}, %r2;"
        memory, old = atomics(f".reg .pred %p<1>;\n{code}", np.array([before], np.float32))
        assert memory.view(np.uint32) == np.float32(after).view(np.uint32)
        assert old[0] == np.float32(before).view(np.uint32)


@pytest.mark.parametrize("address", ["atom.shared.add.f32 %r1, [%r3]", "atom.add.f32 %r1, [%d2]"])
def test_sums_of_f32_in_shared_memory_keep_subnormals(address: str) -> None:
    code = f""".shared .align 4 .b32 s;
mov.u32 %r3, s; mov.u32 %r2, 0; st.shared.u32 [%r3], %r2; bar.sync 0;
cvta.shared.u64 %d2, s; mov.u32 %r2, 1; {address}, %r2; bar.sync 0;
ld.shared.u32 %r4, [%r3]; st.global.u32 [%d0], %r4;"""
    memory, old = atomics(code, np.zeros(1, np.uint32))
    assert memory.tolist() == [32] and sorted(old.tolist()) == list(range(32))


def test_a_long_chain_of_sums_flushes_on_its_way() -> None:
    """Lanes add 1.5 and -1 times 2^-126 by turns: every half that is left becomes zero."""
    addend = "and.b32 %r2, %r0, 1;\nmul.lo.u32 %r2, %r2, 0x7FC00000;\nadd.u32 %r2, %r2, 0x00C00000;"
    code = f"{addend}\natom.global.add.f32 %r1, [%d0], %r2;"
    memory, old = atomics(code, np.zeros(1, np.float32))
    assert memory.tolist() == [0.0]
    assert old.view(np.float32).tolist() == [0.0, 1.5 * 2.0**-126] * 16


def test_a_vector_of_sums_is_a_sum_an_element() -> None:
    code = """
mov.f32 %f0, 1.0; mov.f32 %f1, 2.0; mov.b32 %r2, 0x40003c00; mov.b32 %r3, 0xc0003c00;
atom.global.add.v2.f32 {%f2, %f3}, [%d0], {%f0, %f1};
red.global.add.noftz.v2.f16x2 [%d0+8], {%r2, %r3};
cvt.rzi.u32.f32 %r1, %f2;"""
    memory, old = atomics(code, np.zeros(4, np.uint32), "sm_90")
    assert memory[:2].view(np.float32).tolist() == [32.0, 64.0]
    assert memory[2:].view(np.float16).tolist() == [32.0, 64.0, 32.0, -64.0]
    assert sorted(old.tolist()) == list(range(32))


def test_a_vector_that_is_not_aligned_to_all_of_it_stops_the_launch() -> None:
    with pytest.raises(AssertionError, match="no multiple of 8 bytes"):
        atomics("red.global.add.v2.f32 [%d0+4], {%f0, %f1};", np.zeros(4, np.uint32), "sm_90")
