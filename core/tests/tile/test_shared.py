"""Shared buffers in the reference interpreter: contents, landing of copies, and a finding for each way to use them wrongly."""

from __future__ import annotations

import numpy as np
import pytest
from launching import launch

from tilefw.api.errors import IRError
from tilefw.tile.text.module import parse

HEAD = """func.func @k(%x: !tile.ptr<f32>, %o: !tile.ptr<f32>, %n: i32) {
  %z = tile.constant 0 : i32
  %one = tile.constant 1 : i32
  %two = tile.constant 2 : i32
  %four = tile.constant 4 : i32
"""
STORE = "tile.store_block %o, %t at (%z : i32) strides (%one : i32) : !tile.ptr<f32>, tensor<4xf32>\n"
COPY = "tile.copy_block %x to {} at ({} : i32) strides (%one : i32) : !tile.ptr<f32>, !tile.shared<4xf32>\n"


def kernel(body: str) -> str:
    return HEAD + body + "  func.return\n}"


def run(body: str, n: int = 8, grid: tuple[int, ...] = (1,)) -> tuple[set[str], np.ndarray]:
    x = np.arange(16, dtype=np.float32)
    report, buffers = launch(kernel(body), [x, np.full(8, -1, np.float32), n], grid)
    return {finding.check for finding in report.findings}, buffers[1].read_reference().x


def test_a_copy_is_read_after_its_wait() -> None:
    body = "%b = tile.alloc_shared : !tile.shared<4xf32>\n" + COPY.format("%b", "%two") + "tile.commit\ntile.wait 0\n"
    found, o = run(body + "%t = tile.load_shared %b : !tile.shared<4xf32>\n" + STORE)
    assert not found
    assert o[:4].tolist() == [2, 3, 4, 5]


@pytest.mark.parametrize(
    ("between", "check"),
    [
        ("", "pending"),  # neither a group nor a wait
        ("tile.commit\n", "pending"),
        ("tile.wait 0\n", "pending"),  # the open group is not waited for
        ("tile.commit\ntile.wait 1\n", "pending"),
        ("tile.commit\ntile.commit\ntile.wait 1\n", None),  # an empty group counts
    ],
)
def test_reading_before_the_covering_wait_is_found(between: str, check: str | None) -> None:
    body = "%b = tile.alloc_shared : !tile.shared<4xf32>\n" + COPY.format("%b", "%z") + between
    found, _ = run(body + "%t = tile.load_shared %b : !tile.shared<4xf32>\n" + STORE)
    assert (check in found) if check else not found


def test_what_nothing_wrote_is_poison() -> None:
    found, _ = run("%b = tile.alloc_shared : !tile.shared<4xf32>\n%t = tile.load_shared %b : !tile.shared<4xf32>\n" + STORE)
    assert found == {"initialisation"}


def test_overwriting_what_is_being_filled_is_found() -> None:
    ring = "%b = tile.alloc_shared : !tile.shared<2 x 4xf32>\n%v = tile.slot %b[%one] : !tile.shared<2 x 4xf32>\n"
    again = COPY.format("%v", "%z") + "tile.commit\ntile.wait 0\n"
    assert run(ring + COPY.format("%v", "%z") + again)[0] == {"pending"}
    other = "%w = tile.slot %b[%z] : !tile.shared<2 x 4xf32>\n" + COPY.format("%w", "%z")
    assert not run(ring + other + again)[0]


def test_a_copy_that_nothing_waits_for_is_found() -> None:
    assert run("%b = tile.alloc_shared : !tile.shared<4xf32>\n" + COPY.format("%b", "%z") + "tile.commit\n")[0] == {"pending"}


def test_masked_off_and_out_of_bounds_elements_become_zero() -> None:
    body = """%b = tile.alloc_shared : !tile.shared<4xf32>
      %c = tile.alloc_shared : !tile.shared<4xf32>
      %i = tile.iota 0 to 4
      %nn = tile.splat %two : i32 to tensor<4xi32>
      %m = tile.lts %i, %nn : tensor<4xi32>
      tile.copy %x[%i] to %b mask %m : !tile.ptr<f32>[tensor<4xi32>], !tile.shared<4xf32>
      BLOCK
      tile.commit
      tile.wait 0
      %s = tile.load_shared %b : !tile.shared<4xf32>
      %r = tile.load_shared %c : !tile.shared<4xf32>
      %t = tile.addf %s, %r : tensor<4xf32>
    """
    block = COPY.format("%c", "%one").replace(" : !", " shape (%four : i32) checks [upper] : !", 1)
    found, o = run(body.replace("BLOCK", block) + STORE)
    assert not found
    assert o[:4].tolist() == [0 + 1, 1 + 2, 0 + 3, 0]


def test_programs_copy_when_their_own_condition_holds() -> None:
    body = """%p = tile.program_id 0
      %w = tile.eqi %p, %one : i32
      %b = tile.alloc_shared : !tile.shared<4xf32>
      %zero = tile.constant 0.0 : tensor<4xf32>
      tile.store_shared %b, %zero : !tile.shared<4xf32>
      tile.copy_block %x to %b at (%four : i32) strides (%one : i32) when %w : !tile.ptr<f32>, !tile.shared<4xf32>
      tile.commit
      tile.wait 0
      %t = tile.load_shared %b : !tile.shared<4xf32>
      %at = tile.muli %p, %four : i32
      tile.store_block %o, %t at (%at : i32) strides (%one : i32) : !tile.ptr<f32>, tensor<4xf32>
    """
    found, o = run(body, grid=(2,))
    assert not found
    assert o.tolist() == [0, 0, 0, 0, 4, 5, 6, 7]


RING = """%b = tile.alloc_shared : !tile.shared<3 x 4xf32>
  %zero = tile.constant 0.0 : tensor<4xf32>
  %three = tile.constant 3 : i32
  %e = scf.for %i = %z to %n step %one iter_args(%s = %z) -> (i32) : i32 {{
    %v = tile.slot %b[%s] phase 0 : !tile.shared<3 x 4xf32>
    tile.store_shared %v, %zero : !tile.shared<4xf32>
    {}
    %q = tile.remu %r, %three : i32
    scf.yield %q : i32
  }}
"""


@pytest.mark.parametrize(
    ("step", "check"),
    [
        ("%r = tile.addi %s, %one : i32", None),
        ("%r = tile.addi %s, %two : i32", "phase"),  # the ring moves on by two slots an iteration
        ("%r = tile.addi %s, %one : i32\n%w = tile.slot %b[%s] phase 1 : !tile.shared<3 x 4xf32>", "phase"),
        ("%r = tile.addi %s, %one : i32\n%w = tile.slot %b[%s] phase 3 : !tile.shared<3 x 4xf32>", None),
        ("%r = tile.addi %s, %one : i32\n%w = tile.slot %b[%z] : !tile.shared<3 x 4xf32>", None),
        ("%r = tile.addi %s, %one : i32\n%w = tile.slot %b[%three] : !tile.shared<3 x 4xf32>", "bounds"),
    ],
)
def test_a_slot_that_breaks_its_promise_is_found(step: str, check: str | None) -> None:
    found, _ = run(RING.format(step), n=5)
    assert found == ({check} if check else set())


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("%a = tile.alloc_shared : !tile.shared<4 x f32>", "a shared buffer is"),
        ("%a = tile.alloc_shared : !tile.shared<0x4xf32>", "a shared buffer is"),
        ("%a = tile.alloc_shared : i32", "gives a shared buffer"),
        ("%v = tile.slot %b[%one] phase 0 : !tile.shared<4xf32>", "takes a ring of slots"),
        ("tile.store_shared %r, %t : !tile.shared<2 x 4xf32>", "one slot of a ring"),
        ("%t2 = tile.load_shared %r : !tile.shared<2 x 4xf32>", "one slot of a ring"),
        (COPY.format("%r", "%z").replace("<4x", "<2 x 4x"), "one slot of a ring"),
        ('"tile.copy_block"(%x, %z, %one) <{checks = ["none"]}> : (!tile.ptr<f32>, i32, i32) -> ()', "copies into a shared buffer"),
        ('"tile.wait"() <{pending = -1 : i64}> : () -> ()', "at least 0"),
    ],
)
def test_malformed_ops_are_refused(line: str, message: str) -> None:
    declared = """%b = tile.alloc_shared : !tile.shared<4xf32>
      %r = tile.alloc_shared : !tile.shared<2 x 4xf32>
      %t = tile.constant 0.0 : tensor<4xf32>
    """
    with pytest.raises(IRError, match=message):
        parse(kernel(declared + line + "\n"))


def test_text_survives_a_round_trip() -> None:
    body = """%b = tile.alloc_shared : !tile.shared<2 x 4xf32>
      %w = tile.constant true : i1
      %v = tile.slot %b[%one] phase 1 : !tile.shared<2 x 4xf32>
      %u = tile.slot %b[%z] : !tile.shared<2 x 4xf32>
      %i = tile.iota 0 to 4
      tile.copy %x[%i] to %v when %w cache ".cg" : !tile.ptr<f32>[tensor<4xi32>], !tile.shared<4xf32>
      BLOCK
      tile.commit
      tile.wait 0
      %t = tile.load_shared %u : !tile.shared<4xf32>
    """
    block = COPY.format("%u", "%z").replace(" : !", " shape (%n : i32) checks [both] when %w : !", 1)
    module = parse(kernel(body.replace("BLOCK", block) + STORE))
    assert str(parse(str(module), "again")) == str(module)
