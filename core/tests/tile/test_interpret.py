"""The reference interpreter: results, findings with their place, divergence, masks, budgets, undecided elements."""

from __future__ import annotations

import numpy as np
import pytest
from launching import launch

from tilefw.api.dtypes import DTYPES
from tilefw.api.errors import IRError, LaunchError
from tilefw.tile.reference.accuracy import compare

ADD = """
func.func @add(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %o: !tile.ptr<f32>, %n: i32) {
  %pid = tile.program_id 0
  %c = tile.constant 1024 : i32
  %b = tile.muli %pid, %c : i32
  %i = tile.iota 0 to 1024
  %s = tile.splat %b : i32 to tensor<1024xi32>
  %k = tile.addi %s, %i : tensor<1024xi32>
  %ns = tile.splat %n : i32 to tensor<1024xi32>
  %m = tile.lts %k, %ns : tensor<1024xi32>
  %u = tile.load %x[%k] mask %m : !tile.ptr<f32>[tensor<1024xi32>]
  %v = tile.load %y[%k] mask %m : !tile.ptr<f32>[tensor<1024xi32>]
  %w = tile.addf %u, %v : tensor<1024xf32>
  tile.store %o[%k], %w mask %m : !tile.ptr<f32>[tensor<1024xi32>]
  func.return
}
"""


def body(text: str, parameters: str = "%p: !tile.ptr<i32>, %n: i32") -> str:
    return f"func.func @f({parameters}) {{\n{text}\n  func.return\n}}\n"


def checks(report) -> list[str]:
    return [finding.check for finding in report.findings]


def test_vector_add_is_exact() -> None:
    x, y = np.random.default_rng(0).standard_normal((2, 1 << 20)).astype(np.float32)
    report, (_, _, out) = launch(ADD, [x, y, (x.nbytes,), x.size], (1024,))
    assert not report.findings
    found = compare(x + y, out.read_reference(DTYPES["fp32"]))
    assert found.ok and found.worst == 0.0


def test_the_access_out_of_bounds_is_named() -> None:
    x = np.zeros(10, np.float32)
    report, _ = launch(ADD, [x, np.zeros(16, np.float32), (64,), 12])
    (finding,) = report.findings
    assert (finding.check, finding.code, finding.count) == ("bounds", "TFW0441", 2)
    assert finding.source is not None and finding.source.line == 11
    assert "buffer 1 has 40 bytes; the address is at byte 40" in (finding.note or "")


@pytest.mark.parametrize(("text", "check"), [
    ("  %v = tile.load %p : !tile.ptr<i32>\n  tile.store %p, %v : !tile.ptr<i32>", "initialisation"),
    ("  %i = tile.program_id 0\n  tile.store %p, %i : !tile.ptr<i32>", "races"),
    ("  %z = tile.constant 0 : i64\n  %q = tile.int_to_ptr %z : i64 to !tile.ptr<i32>\n"
     "  tile.store %q, %n : !tile.ptr<i32>", "bounds"),
    ("  %o = tile.constant 1 : i64\n  %a = tile.ptr_to_int %p : !tile.ptr<i32> to i64\n  %b = tile.addi %a, %o : i64\n"
     "  %q = tile.int_to_ptr %b : i64 to !tile.ptr<i32>\n  tile.store %q, %n : !tile.ptr<i32>", "alignment"),
    ("  %h = tile.constant 2147483647 : i32\n  %o = tile.addi %h, %n : i32\n  %q = tile.addptr %p, %o : !tile.ptr<i32>, i32\n"
     "  tile.store %q, %n : !tile.ptr<i32>", "overflow"),
])
def test_each_mistake_is_found(text: str, check: str) -> None:
    report, _ = launch(body(text), [(64,), 5], (2,))
    assert check in checks(report)


def test_wrapping_that_reaches_no_address_is_no_mistake() -> None:
    """A hash wraps on purpose; a masked-off lane's offset may be anything."""
    text = body("""
  %h = tile.constant 2147483647 : i32
  %w = tile.muli %h, %h : i32
  %i = tile.iota 0 to 4
  %hs = tile.splat %h : i32 to tensor<4xi32>
  %k = tile.addi %i, %hs : tensor<4xi32>
  %m = tile.constant false : tensor<4xi1>
  %ws = tile.splat %w : i32 to tensor<4xi32>
  tile.store %p[%k], %ws mask %m : !tile.ptr<i32>[tensor<4xi32>]
  tile.store %p[%i], %ws : !tile.ptr<i32>[tensor<4xi32>]""")
    report, (out,) = launch(text, [(16,), 1])
    assert not report.findings
    assert np.frombuffer(out.read_bytes(16), np.int32).tolist() == [1, 1, 1, 1]


def test_a_loop_that_never_ends_runs_out_of_budget() -> None:
    text = body("""
  %t = tile.constant true : i1
  %r = scf.while (%a = %n) : (i32) -> i32 {
    scf.condition(%t) %a : i32
  } do {
  ^bb0(%b: i32):
    %c = tile.addi %b, %b : i32
    scf.yield %c : i32
  }
  tile.store %p, %r : !tile.ptr<i32>""")
    report, _ = launch(text, [(4,), 1], budget=1_000_000)
    assert checks(report) == ["budget"]


def test_programs_diverge_and_meet_again() -> None:
    """Collatz steps a program, with a branch inside the loop: every program takes its own path."""
    text = body("""
  %one = tile.constant 1 : i32
  %two = tile.constant 2 : i32
  %three = tile.constant 3 : i32
  %zero = tile.constant 0 : i32
  %pid = tile.program_id 0
  %start = tile.addi %pid, %one : i32
  %end, %steps = scf.while (%a = %start, %s = %zero) : (i32, i32) -> (i32, i32) {
    %go = tile.gts %a, %one : i32
    scf.condition(%go) %a, %s : i32, i32
  } do {
  ^bb0(%b: i32, %t: i32):
    %r = tile.remu %b, %two : i32
    %odd = tile.eqi %r, %one : i32
    %next = scf.if %odd -> (i32) {
      %u = tile.muli %b, %three : i32
      %v = tile.addi %u, %one : i32
      scf.yield %v : i32
    } else {
      %h = tile.divs %b, %two : i32
      scf.yield %h : i32
    }
    %t1 = tile.addi %t, %one : i32
    scf.yield %next, %t1 : i32, i32
  }
  %sum = scf.for %i = %zero to %pid step %one iter_args(%c = %steps) -> (i32) : i32 {
    %d = tile.addi %c, %i : i32
    scf.yield %d : i32
  }
  %q = tile.addptr %p, %pid : !tile.ptr<i32>, i32
  tile.store %q, %sum : !tile.ptr<i32>""")

    def expected(pid: int) -> int:
        n, steps = pid + 1, 0
        while n > 1:
            n, steps = (3 * n + 1 if n % 2 else n // 2), steps + 1
        return steps + pid * (pid - 1) // 2

    report, (out,) = launch(text, [(4 * 50,), 0], (50,))
    assert not report.findings
    assert np.frombuffer(out.read_bytes(200), np.int32).tolist() == [expected(i) for i in range(50)]


def test_a_block_access_is_what_its_pointers_say() -> None:
    text = """
func.func @f(%p: !tile.ptr<i32>, %o: !tile.ptr<i32>, %rows: i32, %columns: i32) {
  %at = tile.constant -1 : i32
  %two = tile.constant 2 : i32
  %one = tile.constant 1 : i32
  %z = tile.constant -7 : tensor<4x8xi32>
  %v = tile.load_block %p at (%at, %two : i32, i32) strides (%columns, %one : i32, i32)
    shape (%rows, %columns : i32, i32) checks [both, upper] other %z : !tile.ptr<i32>, tensor<4x8xi32>
  %zero = tile.constant 0 : i32
  %eight = tile.constant 8 : i32
  tile.store_block %o, %v at (%zero, %zero : i32, i32) strides (%eight, %one : i32, i32) : !tile.ptr<i32>, tensor<4x8xi32>
  func.return
}"""
    x = np.arange(2 * 5, dtype=np.int32)
    report, (_, out) = launch(text, [x, (128,), 2, 5])
    expected = np.full((4, 8), -7, np.int32)
    expected[1:3, :3] = x.reshape(2, 5)[:, 2:]
    assert not report.findings
    assert (np.frombuffer(out.read_bytes(128), np.int32).reshape(4, 8) == expected).all()


def test_a_branch_that_rounding_decides_is_told() -> None:
    text = body("""
  %x = tile.constant 1.0 : f32
  %e = tile.exp %x : f32
  %l = tile.log %e : f32
  %c = tile.ltf %l, %x : f32
  scf.if %c {
    tile.store %p, %n : !tile.ptr<i32>
  }""")
    report, _ = launch(text, [(4,), 1])
    assert [(f.check, f.severity) for f in report.findings] == [("undecided", "warning")]


def test_memory_keeps_bounds_and_reinterprets_codes() -> None:
    text = body("""
  %x = tile.constant 2.0 : f32
  %e = tile.exp %x : f32
  tile.store %p, %e : !tile.ptr<f32>
  %one = tile.constant 1 : i32
  %q = tile.addptr %p, %one : !tile.ptr<f32>, i32
  tile.store %q, %x : !tile.ptr<f32>""", "%p: !tile.ptr<f32>")
    _, (out,) = launch(text, [(8,)])
    floats = out.read_reference(DTYPES["fp32"])
    assert floats.err is not None and floats.err[0] > 0 and floats.err[1] == 0
    codes = out.read_reference(DTYPES["int32"])
    assert codes.free is not None and codes.free.tolist() == [True, False] and codes.x[1] == 0x40000000


def test_comparison_counts_and_names_the_worst() -> None:
    x, y = np.random.default_rng(0).standard_normal((2, 100)).astype(np.float32)
    _, (_, _, out) = launch(ADD, [x, y, (400,), 100])
    wrong = x + y
    wrong[17] = np.nextafter(wrong[17], np.float32(9))
    found = compare(wrong, out.read_reference(DTYPES["fp32"]))
    assert not found.ok and found.wrong == 1 and found.worst_index == (17,)


def test_arguments_that_do_not_fit_are_refused() -> None:
    with pytest.raises(LaunchError, match="takes 4 arguments, got 1"):
        launch(ADD, [(4,)])
    with pytest.raises(LaunchError, match="takes a buffer"):
        launch(ADD, [1.5, (4,), (4,), 1])
    with pytest.raises(IRError):
        launch("func.func @f() { tile.foo }", [])
