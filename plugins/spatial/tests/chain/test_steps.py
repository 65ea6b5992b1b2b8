"""What rows become: one step where the unit has the row, signs as modifiers, constants folded, common steps shared; and what
waits longer than an ALU keeps it is moved on."""

from __future__ import annotations

import numpy as np
import pytest
from bounded import applied, assert_within, exactly

from tilefw.api import Place, UnsupportedError
from tilefw_spatial.chain import Apply, ChainLimits, FusedSegment, Input, Literal, Node, NodeResult
from tilefw_spatial.chain.native import NATIVE
from tilefw_spatial.isa import OPS

from .running import chain, run

X, Y, MASK = Input("x", "fp32"), Input("y", "fp32"), Input("mask", "int1")
BYTE, WORD = Input("byte", "int8"), Input("word", "int32")
ONE = Literal(0x3F800000, "fp32")


def one_segment(node: Node) -> FusedSegment:
    [fused] = chain([NodeResult("out", node)])
    return fused


def ops(node: Node) -> list[str]:
    return [f"{step.op} {step.dtype}" for step in one_segment(node).steps]


def fp32(row: str, *operands: Node) -> Apply:
    return Apply(row, operands, "fp32")


def test_every_native_row_names_an_instruction_and_a_type_that_it_has() -> None:
    for row, native in NATIVE.items():
        instruction, variant = OPS[native.op]
        assert native.dtype in instruction.types_of(variant), row


@pytest.mark.parametrize(("node", "expected"), [
    (fp32("addf", X, fp32("negf", fp32("absf", Y))), ["ADD fp32"]),
    (fp32("negf", X), ["MOV fp32"]),
    (fp32("fma", X, ONE, fp32("absf", Literal(0xBF800000, "fp32"))), ["FMA fp32"]),
    (fp32("divf", ONE, X), ["RCP fp32"]),
    (fp32("rsqrt", X), ["RSQ fp32"]),
    (Apply("ltu", (BYTE, BYTE), "int1"), ["CMP.lt uint8"]),
    (Apply("exts", (BYTE,), "int32"), ["CVT.int32 int8"]),
    (fp32("select", MASK, X, Y), ["SELM fp32"]),
    (Apply("bitcast", (X,), "int32"), ["MOV int32"]),
    (X, ["MOV fp32"]),
    (ONE, ["CST fp32"]),
    (fp32("addf", ONE, fp32("exp2", ONE)), ["CST fp32"]),
    (fp32("fma", X, ONE, fp32("negf", ONE)), ["FMA fp32"]),
    (fp32("fma", X, ONE, Literal(0x40000000, "fp32")), ["CST fp32", "FMA fp32"]),
])
def test_steps(node: Node, expected: list[str]) -> None:
    assert ops(node) == expected


def test_signs_act_in_the_order_in_which_they_were_asked_for() -> None:
    x = np.array([[-2.0, 3.0]], np.float32)

    def found(node: Node) -> list[float]:
        return run([one_segment(node)], {"x": x}, (1, 2))["out"][0].tolist()

    assert found(fp32("addf", fp32("absf", fp32("negf", X)), ONE)) == [3.0, 4.0]
    assert found(fp32("addf", fp32("negf", fp32("absf", X)), ONE)) == [-1.0, -2.0]
    assert found(fp32("fma", X, ONE, fp32("negf", ONE))) == [-3.0, 2.0]
    assert found(fp32("fma", X, ONE, fp32("absf", Literal(0xBF800000, "fp32")))) == [-1.0, 4.0]


def test_sums_of_the_matrix_unit_are_read_by_one_segment_and_stored_for_others() -> None:
    sums = Input("sums", "fp32", drained=True)
    node: Node = sums
    for _ in range(20):
        node = fp32("maxf", fp32("mulf", node, node), ONE)
    fused_segments = chain([NodeResult("out", fp32("subf", node, sums))])
    assert len(fused_segments) > 1
    assert [any(read.drained for read in fused.reads) for fused in fused_segments] == [True] + [False] * (len(fused_segments) - 1)
    x = np.full((1, 2), 1.5, np.float32)
    assert (run(fused_segments, {"sums": x}, (1, 2))["out"] == np.inf).all()


def test_a_step_that_two_need_is_one() -> None:
    power = fp32("exp", X)
    again = fp32("exp", X)
    assert ops(fp32("addf", power, again)).count("EX2 fp32") == 1


def test_an_unsigned_byte_is_widened_by_being_read() -> None:
    total = Apply("addi", (BYTE, BYTE), "int8")
    assert ops(Apply("addi", (Apply("extu", (total,), "int32"), WORD), "int32")) == ["ADD int8", "ADD int32"]


def test_what_is_cut_and_widened_again_has_lost_its_upper_bytes() -> None:
    total = Apply("addi", (WORD, WORD), "int32")
    low = Apply("extu", (Apply("trunci", (total,), "int8"),), "int32")
    node = Apply("subi", (low, WORD), "int32")
    word = np.array([[0x1234, -1, 7, 0x7FFFFFFF]], np.int32)
    assert (run(chain([NodeResult("out", node)]), {"word": word}, (1, 4))["out"] == (word * 2 & 0xFF) - word).all()


def test_a_product_that_others_read_too_is_made_once() -> None:
    product = fp32("mulf", X, Y)
    assert sorted(ops(fp32("maxf", product, fp32("addf", product, ONE)))) == ["ADD fp32", "MAX.num fp32", "MUL fp32"]


@pytest.mark.parametrize("row", ["addf", "subf"])
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("negated", [True, False])
def test_a_product_in_a_sum_keeps_all_signs(row: str, first: bool, negated: bool) -> None:
    product = fp32("mulf", X, Y)
    term = fp32("negf", product) if negated else product
    z = Input("z", "fp32")
    fused = one_segment(fp32(row, *((term, z) if first else (z, term))))
    assert [step.op for step in fused.steps] == ["FMA"]
    x, y, added = np.random.default_rng(4).normal(size=(3, 1, 8)).astype(np.float32)
    exact = x.astype(np.float64) * y * (-1 if negated else 1)
    left, right = (exact, added) if first else (added, exact)
    got = run([fused], {"x": x, "y": y, "z": added}, (1, 8))["out"]
    assert (got == (left + right if row == "addf" else left - right).astype(np.float32)).all()


def test_a_result_that_waits_is_moved_on() -> None:
    """x passes once, and is wanted again after two transcendental steps and a sum: 28 cycles later, and a MOV keeps it for 16."""
    node = fp32("mulf", X, fp32("exp2", fp32("log2", fp32("addf", X, ONE))))
    fused = one_segment(node)
    assert [step.op for step in fused.steps].count("MOV") == 2
    x = np.linspace(0.5, 2, 8, dtype=np.float32).reshape(1, 8)
    power = applied("exp2", "fp32", applied("log2", "fp32", applied("addf", "fp32", exactly(x), exactly(np.ones((1, 1))))))
    assert_within(run([fused], {"x": x}, (1, 8))["out"], applied("mulf", "fp32", exactly(x), power))


def test_more_than_the_unit_has_goes_through_memory_in_the_fewest_segments() -> None:
    node: Node = X
    for _ in range(40):
        node = fp32("maxf", fp32("mulf", node, node), ONE)
    fused_segments = chain([NodeResult("out", node)])
    assert [len(fused.steps) for fused in fused_segments] == [16] * 5
    assert all(len(fused.reads) == len(fused.writes) == 1 for fused in fused_segments)


def test_few_streams_make_more_segments() -> None:
    inputs = [Input(k, "fp32") for k in range(12)]
    total: Node = inputs[0]
    for node in inputs[1:]:
        total = fp32("addf", total, node)
    assert len(chain([NodeResult("out", total)])) == 2
    assert len(chain([NodeResult("out", total)], ChainLimits(16, 16))) == 6


def test_what_cannot_be_is_refused_at_the_users_line() -> None:
    place = Place("kernel.py", 7)
    with pytest.raises(UnsupportedError) as caught:
        chain([NodeResult("out", Apply("exts", (WORD,), "int64", place=place))])
    assert (caught.value.code, caught.value.place) == ("TFW0680", place)
