"""Lane IR's ops as PTX: shuffles of every type, packed registers that move for nothing, sums in place, copies, shared memory."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from chips_here import OLDEST
from lane_kernels import Global, compiled, instructions, kernel, launched, result

from tilefw_nvidia.chips import Chip
from tilefw_nvidia.ptxas import assemble, find_ptxas

LANES = np.arange(32)
WHENCE = {
    ("xor", 5): LANES ^ 5, ("xor", 16): LANES ^ 16, ("up", 3): np.where(LANES < 3, LANES, LANES - 3),
    ("down", 9): np.where(LANES > 22, LANES, LANES + 9), ("index", 7): LANES * 0 + 7,
}
STORED = {"i8": np.int8, "f16": np.float16, "f32": np.float32, "f64": np.float64, "i64": np.int64}


def random(element: str, n: int, rows: int = 32) -> np.ndarray:
    rng = np.random.default_rng(3)
    return rng.integers(-100, 100, (rows, n)).astype(STORED[element])


@pytest.mark.parametrize("element", STORED)
@pytest.mark.parametrize(("mode", "amount"), WHENCE)
@pytest.mark.parametrize("n", [1, 3, 8])
def test_a_shuffle_brings_another_lanes_elements(element: str, mode: str, amount: int, n: int, chip: Chip) -> None:
    x, out = Global("x", 0, n, element), Global("o", 1, n, element)
    kind = f"vector<{n}x{element}>"
    shuffle = f'  %r = lane.shuffle %xv {{mode = "{mode}", amount = {amount} : i64}} : ({kind}) -> {kind}\n'
    text = kernel(x.load + shuffle + out.store("%r"), x, out)
    data = random(element, n)
    assert (result(text, data, np.zeros_like(data), chip=chip) == data[WHENCE[mode, amount]]).all()
    words = -(-n * data.itemsize // 4)
    assert Counter(instructions(compiled(text)))[f"shfl.sync.{ {'xor': 'bfly', 'index': 'idx'}.get(mode, mode)}.b32"] == words


def test_lanes_may_be_computed_for_each_element(chip: Chip) -> None:
    x, out = Global("x", 0, 2, "f32"), Global("o", 1, 2, "f32")
    lanes = (
        "  %c = lane.constants [1, 30] : vector<2xi32>\n  %b = lane.splat %t : vector<1xi32> to vector<2xi32>\n"
        "  %l = lane.xori %b, %c : vector<2xi32>\n"
        '  %r = lane.shuffle %xv, %l {mode = "index"} : (vector<2xf32>, vector<2xi32>) -> vector<2xf32>\n'
    )
    data = random("f32", 2)
    found = result(kernel(x.load + lanes + out.store("%r"), x, out), data, np.zeros_like(data), chip=chip)
    assert (found == np.stack([data[LANES ^ 1, 0], data[LANES ^ 30, 1]], axis=1)).all()


def test_predicates_travel_as_words(chip: Chip) -> None:
    x, out = Global("x", 0, 1, "i64"), Global("o", 1, 1, "i64")
    body = (
        "  %z = lane.constant 0 : vector<1xi64>\n  %p = lane.lts %xv, %z : vector<1xi64>\n"
        '  %q = lane.shuffle %p {mode = "xor", amount = 1 : i64} : (vector<1xi1>) -> vector<1xi1>\n'
        "  %r = lane.select %q, %xv, %z : vector<1xi64>\n"
    )
    data = random("i64", 1)
    found = result(kernel(x.load + body + out.store("%r"), x, out), data, np.zeros_like(data), chip=chip)
    assert (found == np.where(data[LANES ^ 1] < 0, data, 0)).all()


def test_whole_packed_registers_move_for_nothing(chip: Chip) -> None:
    """Loaded, exchanged, joined and stored: eight halves never leave their four registers."""
    at = "slots = array<i64: 0>, immediates = array<i64: 0>"
    x, out = Global("x", 0, 8, "f16"), Global("o", 1, 8, "f16")
    body = (
        f'{x.address}  %v = lane.load %xa {{parts = "address", width = 8 : i64, {at}, buffer = 0 : i64}} : (vector<1xi64>)'
        " -> vector<8xf16>\n"
        "  %a = lane.pick %v {indices = array<i64: 6, 7, 0, 1>} : (vector<8xf16>) -> vector<4xf16>\n"
        "  %b = lane.pick %v {indices = array<i64: 2, 3, 4, 5>} : (vector<8xf16>) -> vector<4xf16>\n"
        "  %r = lane.join %a, %b : (vector<4xf16>, vector<4xf16>) -> vector<8xf16>\n"
        f'{out.address}  lane.store %oa, %r {{parts = "address,value", width = 8 : i64, {at}, buffer = 1 : i64}}'
        " : (vector<1xi64>, vector<8xf16>) -> ()\n"
    )
    artifact = compiled(kernel(body, x, out), chip)
    data = random("f16", 8)
    found, findings = launched(artifact, data, np.zeros_like(data), chip=chip)
    assert findings == () and (found == data[:, [6, 7, 0, 1, 2, 3, 4, 5]]).all()
    after_load = instructions(artifact)[instructions(artifact).index("ld.global.v4.b32") + 1 :]
    assert not {"mov.b32", "prmt.b32", "mov.b16"} & set(after_load)


ATOM = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
MULTIPLY = (
    f'lane.atom %av, %bv, {{acc}} {{{{atom = "{ATOM}", a = array<i64: 0>, b = array<i64: 0>, d = array<i64: 0>}}}}'
    " : (vector<8xf16>, vector<4xf16>, vector<4xf32>) -> vector<4xf32>"
)
ONES = [Global("a", 0, 8, "f16"), Global("b", 1, 4, "f16"), Global("o", 2, 4, "f32")]
LOAD = ONES[0].load + ONES[1].load


def accumulated(body: str) -> tuple[np.ndarray, list[str]]:
    """Each atom adds 16 to every element where all elements of A and B are 1."""
    artifact = compiled(kernel(LOAD + body, *ONES))
    found, findings = launched(artifact, np.ones((32, 8), np.float16), np.ones((32, 4), np.float16), np.zeros((32, 4), np.float32))
    assert findings == ()
    return found, instructions(artifact)


LOOP = "  %zero = lane.constant 0 : i32\n  %one = lane.constant 1 : i32\n  %five = lane.constant 5 : i32\n"


def test_an_accumulator_stays_where_it_is_round_a_loop() -> None:
    body = (
        f"{LOOP}  %c = lane.constant 0.0 : vector<4xf32>\n"
        "  %r = scf.for %i = %zero to %five step %one iter_args(%s = %c) -> (vector<4xf32>) : i32 {\n"
        f"    %n = {MULTIPLY.format(acc='%s')}\n    scf.yield %n : vector<4xf32>\n  }}\n"
    )
    found, opcodes = accumulated(body + ONES[2].store("%r"))
    assert (found == 80).all()
    begin = opcodes.index(ATOM)
    assert not any(op.startswith("mov") for op in opcodes[begin : opcodes.index("bra", begin)])


def test_a_sum_that_others_read_is_not_written_over() -> None:
    body = (
        f"  %c = lane.constant 1.0 : vector<4xf32>\n  %n = {MULTIPLY.format(acc='%c')}\n  %m = {MULTIPLY.format(acc='%n')}\n"
        "  %r = lane.addf %n, %m : vector<4xf32>\n"
    )
    assert (accumulated(body + ONES[2].store("%r"))[0] == 17 + 33).all()


def test_an_atom_in_a_loop_starts_from_the_same_sum_each_time() -> None:
    """The accumulator comes from outside and is not carried."""
    body = (
        f"{LOOP}  %c = lane.constant 1.0 : vector<4xf32>\n  %n = {MULTIPLY.format(acc='%c')}\n"
        "  %r = scf.for %i = %zero to %five step %one iter_args(%s = %c) -> (vector<4xf32>) : i32 {\n"
        f"    %m = {MULTIPLY.format(acc='%n')}\n    scf.yield %m : vector<4xf32>\n  }}\n"
    )
    assert (accumulated(body + ONES[2].store("%r"))[0] == 33).all()


def copying(bytes: int, masked: bool, when: str = "") -> str:
    """Each thread copies 16 bytes, in copies of `bytes`, of which odd ones are masked off, and reads its neighbour's."""
    count = 16 // bytes
    at = ", ".join(str(i * bytes) for i in range(count))
    slots = ", ".join(["0"] * count)
    mask = f"  %odd = lane.constants {[i % 2 for i in range(count)]} : vector<{count}xi32>\n" if count > 1 else (
        "  %two = lane.constant 1 : vector<1xi32>\n  %odd = lane.andi %t, %two : vector<1xi32>\n"
    )
    kinds = "vector<1xi32>, vector<1xi64>" + (f", vector<{count}xi1>" if masked else "") + (", i1" if when else "")
    parts = "address,source" + (",mask" if masked else "") + (",when" if when else "")
    operands = "%s, %xa" + (", %m" if masked else "") + (", %w" if when else "")
    x, out = Global("x", 0, 4, "i32"), Global("o", 1, 4, "i32")
    body = (
        f'{x.address}  %b = lane.alloc {{id = 0 : i64, bytes = 512 : i64, align = 16 : i64, label = "b"}} : () -> i32\n'
        "  %bs = lane.splat %b : i32 to vector<1xi32>\n  %w16 = lane.constant 16 : vector<1xi32>\n"
        f"  %o16 = lane.muli %t, %w16 : vector<1xi32>\n  %s = lane.addi %bs, %o16 : vector<1xi32>\n{mask}"
        f"  %zs = lane.constant 0 : vector<{count}xi32>\n  %m = lane.eqi %odd, %zs : vector<{count}xi32>\n{when}"
        f'  lane.copy_async {operands} {{parts = "{parts}", bytes = {bytes} : i64, slots = array<i64: {slots}>,'
        f" immediates = array<i64: {at}>, source_slots = array<i64: {slots}>, source_immediates = array<i64: {at}>,"
        f" buffer = 0 : i64, argument = 0 : i64}} : ({kinds}) -> ()\n  lane.commit\n  lane.wait {{pending = 0 : i64}}\n"
        "  %n1 = lane.constant 16 : vector<1xi32>\n  %n = lane.xori %o16, %n1 : vector<1xi32>\n"
        "  %f = lane.addi %n, %bs : vector<1xi32>\n"
        '  %r = lane.load %f {parts = "address", width = 4 : i64, slots = array<i64: 0>, immediates = array<i64: 0>,'
        ' buffer = 0 : i64, space = "shared"} : (vector<1xi32>) -> vector<4xi32>\n'
    )
    return kernel(body + out.store("%r"), x, out)


@pytest.mark.parametrize("bytes", [4, 8, 16])
@pytest.mark.parametrize("masked", [False, True])
def test_copies_land_where_masked_off_ones_write_zeros(bytes: int, masked: bool, chip: Chip) -> None:
    data = np.arange(128, dtype=np.int32).reshape(32, 4) + 1
    expected = data.copy()
    if masked and bytes == 16:
        expected[1::2] = 0
    elif masked:
        expected.reshape(32, 16 // bytes, -1)[:, 1::2] = 0
    text = copying(bytes, masked)
    assert (result(text, data, np.zeros_like(data), chip=chip) == expected[LANES ^ 1]).all()
    level = "cg" if bytes == 16 else "ca"
    assert Counter(instructions(compiled(text)))[f"cp.async.{level}.shared.global"] == 16 // bytes


def test_the_one_barrier_of_a_copy_is_needed() -> None:
    """Without a barrier a neighbour's copy may still be under way, or be seen by its own thread alone."""
    artifact = compiled(copying(16, False))
    assert artifact.text.count("bar.sync") == 1


@pytest.mark.parametrize(("slots", "dynamic"), [(1, False), (3, False), (4, True)])
def test_more_than_48_kib_is_dynamic(slots: int, dynamic: bool) -> None:
    """Buffers of 16 KiB that are alive together; each thread reads its own word of each back."""
    x, out = Global("x", 0, 1, "i32"), Global("o", 1, 1, "i32")
    lines = ["  %w4 = lane.constant 4 : vector<1xi32>\n  %o4 = lane.muli %t, %w4 : vector<1xi32>\n"]
    lines.append("  %r0 = lane.constant 0 : vector<1xi32>\n")
    at = 'width = 1 : i64, slots = array<i64: 0>, immediates = array<i64: 0>, space = "shared"'
    for i in range(slots):
        lines.append(f'  %b{i} = lane.alloc {{id = {i} : i64, bytes = 16384 : i64, align = 16 : i64, label = "b"}} : () -> i32\n')
        lines.append(f"  %s{i} = lane.splat %b{i} : i32 to vector<1xi32>\n  %a{i} = lane.addi %s{i}, %o4 : vector<1xi32>\n")
        lines.append(f"  %c{i} = lane.constant {i + 1} : vector<1xi32>\n  %v{i} = lane.muli %xv, %c{i} : vector<1xi32>\n")
        store = f'lane.store %a{i}, %v{i} {{parts = "address,value", {at}, buffer = {i} : i64}}'
        lines.append(f"  {store} : (vector<1xi32>, vector<1xi32>) -> ()\n")
    for i in range(slots):
        load = f'lane.load %a{i} {{parts = "address", {at}, buffer = {i} : i64}}'
        lines.append(f"  %l{i} = {load} : (vector<1xi32>) -> vector<1xi32>\n")
        lines.append(f"  %r{i + 1} = lane.addi %r{i}, %l{i} : vector<1xi32>\n")
    artifact = compiled(kernel(x.load + "".join(lines) + out.store(f"%r{slots}"), x, out))
    assert artifact.entry().shared_bytes == 16384 * slots and artifact.resources.shared_bytes == 16384 * slots
    assert (".extern .shared" in artifact.text) == dynamic
    data = random("f32", 1).astype(np.int32)
    found, findings = launched(artifact, data, np.zeros_like(data))
    assert findings == () and (found == data * sum(range(slots + 1))).all()
    if find_ptxas() is not None:
        assert assemble(artifact, OLDEST, ours=True).resources.shared_bytes == 16384 * slots
