"""Atomics in tile IR and in the reference interpreter: meaning of each kind, order of programs, waiting, bounds, races."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from launching import launch

from tilefw.api.dtypes import DTYPES
from tilefw.api.errors import IRError
from tilefw.tile.dialect.atomic_ops import KINDS
from tilefw.tile.reference.accuracy import compare
from tilefw.tile.text.module import parse

PARAMETERS = "%p: !tile.ptr<i32>, %q: !tile.ptr<i32>, %n: i32"


def kernel(text: str, parameters: str = PARAMETERS) -> str:
    return f"func.func @f({parameters}) {{\n{text}\n  func.return\n}}\n"


def on_tile(kind: str, element: str, count: int = 8, words: str = "relaxed device") -> str:
    """One atomic of a tile of `count` elements at offsets %o, whose old values are stored."""
    return f"""
func.func @f(%p: !tile.ptr<{element}>, %where: !tile.ptr<i32>, %v: !tile.ptr<{element}>, %old: !tile.ptr<{element}>) {{
  %i = tile.iota 0 to {count}
  %o = tile.load %where[%i] : !tile.ptr<i32>[tensor<{count}xi32>]
  %x = tile.load %v[%i] : !tile.ptr<{element}>[tensor<{count}xi32>]
  %r = tile.atomic_rmw {kind} {words} %p[%o], %x : !tile.ptr<{element}>[tensor<{count}xi32>]
  tile.store %old[%i], %r : !tile.ptr<{element}>[tensor<{count}xi32>]
  func.return
}}
"""


def checks(report) -> list[str]:
    return [finding.check for finding in report.findings]


GOOD = """builtin.module {
  func.func @f(%p: !tile.ptr<f32>, %q: !tile.ptr<i16>, %x: tensor<8xf32>, %o: tensor<8xi64>, %m: tensor<8xi1>, %c: i16) {
    %a = tile.atomic_rmw add acq_rel device %p[%o], %x mask %m : !tile.ptr<f32>[tensor<8xi64>]
    %b = tile.atomic_rmw minf relaxed workgroup %p[%o], %a {tile.hint} : !tile.ptr<f32>[tensor<8xi64>]
    %d = tile.atomic_cas acquire system %q, %c, %c : !tile.ptr<i16>
    func.return
  }
}"""


def test_text_reads_back() -> None:
    assert str(parse(GOOD)) == GOOD


@pytest.mark.parametrize(("piece", "becomes", "said"), [
    ("add acq_rel", "sub acq_rel", "the kind 'sub' is none of add,"),
    ("acq_rel device", "seq_cst device", "the order 'seq_cst' is none of relaxed"),
    ("acquire system", "acquire gpu", "the scope 'gpu' is none of workgroup"),
    ("minf relaxed", "minu relaxed", "atomic minu is there for i32, i64, not for f32"),
    ("i16", "i8", "atomic compare-and-swap is there for i16"),
    ("[%o], %x mask", "[%o], %o mask", "used with type tensor<8xf32>"),
])
def test_mistakes_are_said_in_words(piece: str, becomes: str, said: str) -> None:
    with pytest.raises(IRError, match=said.replace("[", r"\[")):
        parse(GOOD.replace(piece, becomes))


NUMPY = {
    "add": np.add, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "xchg": lambda a, b: b,
    "maxs": np.maximum, "mins": np.minimum, "maxf": np.maximum, "minf": np.minimum,
    "maxu": lambda a, b: max(a, b, key=lambda x: int(x) % 2 ** (8 * x.itemsize)),
    "minu": lambda a, b: min(a, b, key=lambda x: int(x) % 2 ** (8 * x.itemsize)),
}
INTS = {"i32": np.int32, "i64": np.int64}


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_each_kind_is_a_chain_of_steps_in_the_order_of_elements(kind: str, data: st.DataObject) -> None:
    """Equal addresses within a tile are accesses of their own: against a loop over the elements in NumPy."""
    seed = data.draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    where = rng.integers(0, 3, 8).astype(np.int32)
    for element, dtype in INTS.items() if "i32" in map(str, KINDS[kind].elements) else (("f32", np.float32), ("f64", np.float64)):
        make = (lambda n, d=dtype: rng.integers(-(2**30), 2**30, n).astype(d)) if element in INTS else (
            lambda n, d=dtype: rng.integers(-99, 99, n).astype(d)
        )
        memory, values = make(4), make(8)
        report, (found, _, _, old) = launch(on_tile(kind, element), [memory, where, values, np.zeros(8, dtype)])
        expected, before = memory.copy(), np.zeros(8, dtype)
        for i, (at, value) in enumerate(zip(where, values, strict=True)):
            before[i] = expected[at]
            expected[at] = NUMPY[kind](expected[at], value)
        assert not report.findings
        assert np.array_equal(np.frombuffer(found.read_bytes(memory.nbytes), dtype), expected)
        assert np.array_equal(np.frombuffer(old.read_bytes(before.nbytes), dtype), before)


def test_float_extremes_order_zeros_and_leave_nan_open() -> None:
    memory = np.array([-0.0, 0.0, 1.0, np.nan], np.float32)
    values = np.array([0.0, -0.0, np.nan, 1.0], np.float32)
    where = np.arange(4, dtype=np.int32)
    _, (largest, *_) = launch(on_tile("maxf", "f32", 4), [memory, where, values, np.zeros(4, np.float32)])
    found = largest.read_reference(DTYPES["fp32"])
    assert np.signbit(found.x[:2]).tolist() == [False, False] and found.free is not None
    assert found.free.tolist() == [False, False, True, True]
    _, (least, *_) = launch(on_tile("minf", "f32", 4), [memory, where, values, np.zeros(4, np.float32)])
    assert np.signbit(least.read_reference(DTYPES["fp32"]).x[:2]).tolist() == [True, True]


def test_compare_and_swap_compares_codes() -> None:
    text = kernel(
        "  %z = tile.constant 0.0 : f32\n  %one = tile.constant 1.0 : f32\n"
        "  %r = tile.atomic_cas relaxed device %p, %z, %one : !tile.ptr<f32>", "%p: !tile.ptr<f32>",
    )
    for start, end in ((0.0, 1.0), (-0.0, -0.0), (2.0, 2.0)):
        _, (memory,) = launch(text, [np.array([start], np.float32)])
        assert np.frombuffer(memory.read_bytes(4), np.float32)[0] == end


def test_masked_off_elements_are_no_accesses() -> None:
    text = """
func.func @f(%p: !tile.ptr<i32>, %n: i32) {
  %i = tile.iota 0 to 8
  %ns = tile.splat %n : i32 to tensor<8xi32>
  %m = tile.lts %i, %ns : tensor<8xi32>
  %r = tile.atomic_rmw add relaxed device %p[%i], %ns mask %m : !tile.ptr<i32>[tensor<8xi32>]
  func.return
}
"""
    report, (memory,) = launch(text, [np.zeros(5, np.int32), 5], (3,))
    assert not report.findings and np.frombuffer(memory.read_bytes(20), np.int32).tolist() == [15] * 5
    assert "bounds" in checks(launch(text, [np.zeros(5, np.int32), 6])[0])


# Sums in memory --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("element", "name", "dtype"), [
    ("f32", "fp32", np.float32), ("f64", "fp64", np.float64), ("f16", "fp16", np.float16),
])
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), scale=st.integers(0, 6))
def test_sums_hold_for_every_order(element: str, name: str, dtype: type, seed: int, scale: int) -> None:
    """Additions rounded one after the other, in a random order, stay within the bound that the reference gives."""
    rng = np.random.default_rng(seed)
    values = (rng.standard_normal(64) * 10.0 ** rng.integers(-scale, scale // 2 + 1, 64)).astype(dtype)
    start = rng.standard_normal(1).astype(dtype)
    where = np.zeros(64, np.int32)
    _, (memory, *_) = launch(on_tile("add", element, 64), [start, where, values, np.zeros(64, dtype)])
    expected = memory.read_reference(DTYPES[name])
    assert expected.err is not None and np.isfinite(expected.err).all()
    for _ in range(8):
        total = start.copy()
        for value in rng.permutation(values):
            total += value
        assert compare(total, expected).ok


def test_an_addend_that_rounding_decides_is_a_number_of_the_format() -> None:
    """What is read of the sum comes of one addend of the format, and either addend that the bound admits gives one within it."""
    text = kernel("""
  %at = tile.iota 0 to 64
  %x = tile.load %x_ptr[%at] : !tile.ptr<f32>[tensor<64xi32>]
  %inexact = tile.exp %x : tensor<64xf32>
  %halves = tile.castf %inexact : tensor<64xf32> to tensor<64xf16>
  %old = tile.atomic_rmw add relaxed device %p[%at], %halves : !tile.ptr<f16>[tensor<64xi32>]""",
                  "%p: !tile.ptr<f16>, %x_ptr: !tile.ptr<f32>")
    # Logarithms of numbers that lie halfway between two halves: the last bit of exp decides which one it is.
    between = (1.0 + (2 * np.arange(64) + 1) / 2.0**11).astype(np.float64)
    start = (-0.75 - np.arange(64) / 256).astype(np.float16)  # so that sums lie closer together than the addends do
    _, (memory, _) = launch(text, [start, np.log(between).astype(np.float32)])
    expected = memory.read_reference(DTYPES["fp16"])
    read = np.frombuffer(memory.read_bytes(128), np.float16)
    sums = [start + (between + side * 2.0**-11).astype(np.float16) for side in (-1, 1)]
    assert ((read == sums[0]) | (read == sums[1])).all()
    assert all(compare(total, expected).ok for total in sums)


def test_sums_of_whole_numbers_are_exact_and_overflow_is_open() -> None:
    where = np.zeros(8, np.int32)
    values = np.arange(8, dtype=np.float32) * 2.0**20
    _, (memory, *_) = launch(on_tile("add", "f32"), [np.zeros(1, np.float32), where, values, np.zeros(8, np.float32)])
    assert memory.read_reference(DTYPES["fp32"]).err is None
    large = np.full(8, 60000.0, np.float16) * np.array([1, -1] * 4, np.float16)
    _, (memory, *_) = launch(on_tile("add", "f16"), [np.zeros(1, np.float16), where, large, np.zeros(8, np.float16)])
    found = memory.read_reference(DTYPES["fp16"])
    assert found.err is not None and np.isinf(found.err).all()


def test_a_stored_element_begins_a_sum_anew() -> None:
    text = kernel("""
  %big = tile.constant 1.0e+8 : f32
  %zero = tile.constant 0.0 : f32
  %tenth = tile.constant 0.1 : f32
  %a = tile.atomic_rmw add relaxed device %p, %big : !tile.ptr<f32>
  tile.store %p, %zero : !tile.ptr<f32>
  %b = tile.atomic_rmw add relaxed device %p, %tenth : !tile.ptr<f32>""", "%p: !tile.ptr<f32>")
    _, (memory,) = launch(text, [np.ones(1, np.float32)])
    found = memory.read_reference(DTYPES["fp32"])
    assert found.err is None or found.err[0] < 1e-6


# Programs that speak with each other -----------------------------------------------------------------------------------

LOCKED = """
func.func @f(%lock: !tile.ptr<i32>, %sum: !tile.ptr<i32>) {
  %zero = tile.constant 0 : i32
  %one = tile.constant 1 : i32
  scf.while () : () -> () {
    %old = tile.atomic_cas ACQUIRE SCOPE %lock, %zero, %one : !tile.ptr<i32>
    %taken = tile.eqi %old, %one : i32
    scf.condition(%taken)
  } do {
    scf.yield
  }
  %pid = tile.program_id 0
  %s = tile.load %sum : !tile.ptr<i32>
  %t = tile.addi %s, %pid : i32
  tile.store %sum, %t : !tile.ptr<i32>
  %free = tile.atomic_rmw xchg RELEASE SCOPE %lock, %zero : !tile.ptr<i32>
  func.return
}
"""


def locked(acquire: str = "acquire", release: str = "release", scope: str = "device") -> str:
    return LOCKED.replace("ACQUIRE", acquire).replace("RELEASE", release).replace("SCOPE", scope)


@pytest.mark.parametrize(("words", "found"), [
    ({}, []),
    ({"acquire": "acq_rel", "release": "acq_rel", "scope": "system"}, []),
    ({"acquire": "relaxed"}, ["races"]),
    ({"release": "acquire"}, ["races"]),
    ({"scope": "workgroup"}, ["races"]),
])
def test_a_lock_orders_what_it_guards(words: dict[str, str], found: list[str]) -> None:
    report, (_, total) = launch(locked(**words), [np.zeros(1, np.int32), np.zeros(1, np.int32)], (20,))
    assert sorted(set(checks(report))) == found
    assert np.frombuffer(total.read_bytes(4), np.int32)[0] == 190


FLAGS = """
func.func @f(%count: !tile.ptr<i32>, %data: !tile.ptr<i32>, %n: i32) {
  %zero = tile.constant 0 : i32
  %one = tile.constant 1 : i32
  %pid = tile.program_id 0
  %slot = tile.addptr %data, %pid : !tile.ptr<i32>, i32
  tile.store %slot, %pid : !tile.ptr<i32>
  %arrived = tile.atomic_rmw add release device %count, %one : !tile.ptr<i32>
  scf.while () : () -> () {
    %now = tile.atomic_rmw or acquire device %count, %zero : !tile.ptr<i32>
    %missing = tile.nei %now, %n : i32
    scf.condition(%missing)
  } do {
    scf.yield
  }
  %next = tile.addi %pid, %one : i32
  %other = tile.rems %next, %n : i32
  %there = tile.addptr %data, %other : !tile.ptr<i32>, i32
  %v = tile.load %there : !tile.ptr<i32>
  %out = tile.addptr %slot, %n : !tile.ptr<i32>, i32
  tile.store %out, %v : !tile.ptr<i32>
  func.return
}
"""


def test_programs_wait_for_later_ones() -> None:
    """A barrier over the whole grid: everybody reads what its neighbour wrote before, the last one's from the first."""
    report, (_, data) = launch(FLAGS, [np.zeros(1, np.int32), np.zeros(16, np.int32), 8], (8,))
    assert not report.findings
    assert np.frombuffer(data.read_bytes(64), np.int32)[8:].tolist() == [1, 2, 3, 4, 5, 6, 7, 0]


def test_programs_that_wait_for_nobody_run_out_of_budget() -> None:
    report, _ = launch(FLAGS, [np.zeros(1, np.int32), np.zeros(20, np.int32), 9], (8,), budget=10_000_000)
    assert checks(report) == ["budget"]


def test_old_values_are_those_of_the_grid_order() -> None:
    text = kernel("""
  %one = tile.constant 1 : i32
  %pid = tile.program_id 0
  %ticket = tile.atomic_rmw add relaxed device %p, %one : !tile.ptr<i32>
  %out = tile.addptr %q, %pid : !tile.ptr<i32>, i32
  tile.store %out, %ticket : !tile.ptr<i32>""")
    report, (_, tickets) = launch(text, [np.zeros(1, np.int32), np.zeros(6, np.int32), 6], (6,))
    assert not report.findings and np.frombuffer(tickets.read_bytes(24), np.int32).tolist() == list(range(6))


@pytest.mark.parametrize(("text", "found"), [
    ("  %a = tile.atomic_rmw add relaxed device %p, %n : !tile.ptr<i32>\n"
     "  %b = tile.atomic_rmw xor relaxed device %p, %n : !tile.ptr<i32>", []),
    ("  %a = tile.atomic_rmw add relaxed workgroup %p, %n : !tile.ptr<i32>", ["races"]),
    ("  %a = tile.atomic_rmw add relaxed device %p, %n : !tile.ptr<i32>\n  %b = tile.load %p : !tile.ptr<i32>", ["races"]),
    ("  %i = tile.program_id 0\n  tile.store %p, %i : !tile.ptr<i32>\n"
     "  %a = tile.atomic_rmw add acq_rel device %p, %n : !tile.ptr<i32>", ["races"]),
])
def test_accesses_race_unless_all_are_atomic_for_everybody(text: str, found: list[str]) -> None:
    report, _ = launch(kernel(text), [np.zeros(1, np.int32), np.zeros(1, np.int32), 1], (3,))
    assert sorted(set(checks(report))) == found


@pytest.mark.parametrize(("arguments", "check"), [([(4,), (4,), 1], "initialisation"), ([0, (4,), 1], "bounds")])
def test_atomics_are_checked_like_other_accesses(arguments: list, check: str) -> None:
    text = kernel("  %a = tile.atomic_rmw add relaxed device %p, %n : !tile.ptr<i32>")
    assert check in checks(launch(text, arguments)[0])
