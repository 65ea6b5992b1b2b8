"""What is written for each kind of access and row computes what the reference computes."""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
from dataclasses import replace
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest

import tilefw
import tilefw.language as tl
from tilefw.api.expand import missing
from tilefw.api.ir import FuncOp, entry_of, parse
from tilefw.runtime.plugins.loader import find_target
from tilefw.testing.programs import numbered, run
from tilefw_cpu import rows as table
from tilefw_cpu.compile import NativeCode, assembly_of, object_of
from tilefw_cpu.emit import functions_text
from tilefw_cpu.processor import Processor, processor


@tilefw.jit
def accesses(x, out, n, stride, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    forward = tl.load(x + at, mask=at < n, other=-1)
    backward = tl.load(x + (BLOCK - 1 - at), mask=BLOCK - 1 - at < n, other=-2)
    apart = tl.load(x + at * stride, mask=at * stride < n, other=-3)
    picked = tl.load(x + (at * 7) % BLOCK, mask=(at * 7) % BLOCK < n, other=-4)
    one = tl.load(x, mask=n > 100, other=-5)
    tl.store(out + at, forward)
    tl.store(out + 2 * BLOCK - 1 - at, backward)
    tl.store(out + 2 * BLOCK + at * 2, apart)
    tl.store(out + 4 * BLOCK + (at * 5) % BLOCK, picked, mask=at != 3)
    tl.store(out + 5 * BLOCK, one)
    tl.store(out + 5 * BLOCK + 1, one, mask=n > 100)


@tilefw.jit
def row(x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at))


@tilefw.jit
def tile(x, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    at = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    tl.store(out + at, tl.load(x + at))


@pytest.mark.skipif(processor().vector_bits != 512, reason="a vector is less than a cache line")
def test_rows_that_programs_read_one_after_another_are_fetched_ahead() -> None:
    x, out = np.arange(4096, dtype=np.float32), np.zeros(4096, np.float32)
    ahead = row[(16,)](x, out, BLOCK=256, target="cpu").artifact.text
    assert np.array_equal(out, x) and "call void @llvm.prefetch" in ahead
    assert "@llvm.prefetch" not in tile[(1,)](x, out, ROWS=64, COLUMNS=64, target="cpu").artifact.text


@tilefw.jit
def cut(x, out, stride, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    rows, columns = tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    tl.store(out + rows * COLUMNS + columns, tl.load(x + rows * stride + columns))


def test_rows_that_are_far_apart_are_fetched_ahead_where_they_are_short() -> None:
    x = np.arange(64 * 512, dtype=np.float32)
    for columns, short in ((16, True), (64, True), (512, False)):
        out = np.zeros(64 * columns, np.float32)
        text = cut[(1,)](x, out, 512, ROWS=64, COLUMNS=columns, target="cpu").artifact.text
        assert np.array_equal(out.reshape(64, columns), x.reshape(64, 512)[:, :columns])
        assert ("call void @llvm.prefetch" in text) == short


@tilefw.jit
def swaps(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a = tl.load(x + at)
    b = tl.load(x + BLOCK + at)
    for i in range(n):
        a, b = b + i, a
    tl.store(out + at, a)
    tl.store(out + BLOCK + at, b)


@tilefw.jit
def signs(x, y, chosen, out, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a, b, c = tl.load(x + at), tl.load(y + at), tl.load(chosen + at) > 0
    sign: tl.constexpr = -(1 << (WIDTH - 1))
    mixed = (a & sign) | (b & ~sign)
    tl.store(out + at, tl.where(c, a, mixed))
    tl.store(out + BLOCK + at, tl.where(c, mixed, a))
    tl.store(out + 2 * BLOCK + at, tl.where(c, b, mixed))
    tl.store(out + 3 * BLOCK + at, tl.where(c, mixed, b))


@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.int64])
def test_a_number_is_chosen_over_one_with_its_sign_and_other_bits(dtype: Any) -> None:
    random, width = np.random.default_rng(0), 8 * np.dtype(dtype).itemsize
    x, y = random.integers(-(1 << (width - 1)), 1 << (width - 1), (2, 64), dtype)
    _both(signs, [x, y, random.integers(0, 2, 64).astype(np.int32), np.zeros(256, dtype)], WIDTH=width, BLOCK=64)


@tilefw.jit
def remainders(x, y, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at).to(tl.bfloat16) % tl.load(y + at).to(tl.bfloat16))


def test_remainders_of_half_a_floats_bits_are_the_references() -> None:
    """Whose bits below the upper 16 LLVM knows, and makes other instructions of than of an f32's."""
    x, y = np.linspace(-3, 5, 32, dtype=np.float32), np.linspace(0.3, 2, 32, dtype=np.float32)
    _both(remainders, [x, y, np.zeros(32, np.float32)], BLOCK=32)


@pytest.mark.parametrize("halves", [False, True])
def test_every_row_is_served_at_every_type(halves: bool) -> None:
    class Served:
        rows = table.rows(halves)

    assert missing(Served) == {}


def _both(kernel: Any, arrays: list[np.ndarray[Any, Any]], *args: Any, **constants: Any) -> None:
    """Run a kernel here and on the reference; the arrays are equal."""
    expected = [array.copy() for array in arrays]
    kernel[(1,)](*expected, *args, **constants, target="reference")
    kernel[(1,)](*arrays, *args, **constants)
    for found, wanted in zip(arrays, expected, strict=True):
        assert np.array_equal(found, wanted)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.float64])
@pytest.mark.parametrize("n", [0, 37, 128])
def test_every_kind_of_access_reads_and_writes_what_it_should(dtype: Any, n: int) -> None:
    x = np.arange(128).astype(dtype)
    _both(accesses, [x, np.full(6 * 128, 99, dtype)], n, 3, BLOCK=128)


def test_values_that_a_loop_exchanges_are_not_written_before_they_are_read() -> None:
    x = np.arange(128, dtype=np.int32)
    _both(swaps, [x, np.zeros(128, np.int32)], 5, BLOCK=64)


def test_an_older_processor_gets_narrow_vectors_and_another_key() -> None:
    """The text for it has none of this processor's vectors, and LLVM makes its code of it."""
    here = processor()
    if not here.triple.startswith("x86_64"):
        pytest.skip("the older processor is an x86-64 one")
    older = replace(here, name="x86-64-v2", features=frozenset({"sse4.2", "ssse3", "sse4.1", "popcnt", "cx16"}))
    signature = {"x": "*fp16", "out": "*fp16", "n": "i32"}
    module = parse(tilefw.compile(swaps, target="reference", signature=signature, constexprs={"BLOCK": 64}).text, "swaps")
    functions = [(op, entry_of(op)) for op in module.body.block.ops if isinstance(op, FuncOp)]
    text, _ = functions_text(functions, older, False)
    assert older.digest != here.digest and "<16 x" not in text and "half" in text
    assert "zmm" not in assembly_of(text, older) and "ymm" not in assembly_of(text, older)


@tilefw.jit
def multiplied(x, y, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    places = at[:, None] * BLOCK + at[None, :]
    tl.store(out + places, tl.dot(tl.load(x + places), tl.load(y + places), input_precision="ieee"))


@pytest.mark.parametrize("name, features", [
    ("haswell", {"avx2", "fma"}), ("skylake-avx512", {"avx2", "fma", "avx512f", "avx512bw", "avx512dq", "avx512vl"}),
])
def test_the_sums_of_a_product_stay_in_registers(name: str, features: set[str]) -> None:
    there = Processor("x86_64-unknown-linux-gnu", name, frozenset(features))
    signature = dict.fromkeys(("x", "y", "out"), "*fp32")
    module = parse(tilefw.compile(multiplied, target="reference", signature=signature, constexprs={"BLOCK": 64}).text, "multiplied")
    functions = [(op, entry_of(op)) for op in module.body.block.ops if isinstance(op, FuncOp)]
    blocks = re.split(r"^\.LBB\S+:|^\s+j", assembly_of(functions_text(functions, there, True)[0], there), flags=re.MULTILINE)
    loops = [block for block in blocks if block.count("vfmadd") > 8]  # as many as there are heights of blocks of sums
    assert loops and not any(re.search(r"^\s+vmov.*mm\d+, .*\(", loop, re.MULTILINE) for loop in loops)  # nor into memory


@tilefw.jit
def halved(x, out, m, n, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows, columns = tl.arange(0, ROWS)[:, None], tl.arange(0, BLOCK)[None, :]
    inside = (rows < m) & (columns < n)
    tl.store(out + rows * n + columns, tl.load(x + rows * n + columns, mask=inside, other=0.0) * 0.5, mask=inside)


@pytest.mark.parametrize("name, features, masked", [
    ("znver3", {"avx2", "fma"}, False), ("x86-64-v2", {"sse4.2"}, False),
    ("skylake-avx512", {"avx2", "fma", "avx512f", "avx512bw", "avx512dq", "avx512vl"}, True),
])
def test_whole_vectors_are_stored_through_masks_where_that_costs_nothing_alone(name: str, features: set[str], masked: bool) -> None:
    there = Processor("x86_64-unknown-linux-gnu", name, frozenset(features))
    signature = {"x": "*fp32", "out": "*fp32", "m": "i32", "n": "i32"}
    compiled = tilefw.compile(halved, target="reference", signature=signature, constexprs={"ROWS": 8, "BLOCK": 64})
    functions = [(op, entry_of(op)) for op in parse(compiled.text, "halved").body.block.ops if isinstance(op, FuncOp)]
    blocks = re.split(r"^\w+:", functions_text(functions, there, True)[0], flags=re.MULTILINE)
    made = [block for block in blocks if re.search(r"= fmul <\d+ x float>", block)]
    plain = [block for block in made if "@llvm.masked.store" not in block]
    assert len(made) == 2 - masked and len(plain) == 1 - masked
    for m, n in ((8, 64), (5, 37), (0, 64), (8, 0), (3, 8), (1, 1)):
        _both(halved, [np.arange(512, dtype=np.float32), np.full(512, 7, np.float32)], m, n, ROWS=8, BLOCK=64)


@tilefw.jit
def moved_rows(x, y, z, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    places = at[:, None] * BLOCK + at[None, :]
    tl.store(out + places, tl.load(x + places) * (tl.load(y + at) + tl.load(z + at))[:, None])


def test_what_is_the_same_along_a_row_is_made_before_its_loop() -> None:
    signature = dict.fromkeys(("x", "y", "z", "out"), "*fp32")
    module = parse(tilefw.compile(moved_rows, target="reference", signature=signature, constexprs={"BLOCK": 64}).text, "moved_rows")
    functions = [(op, entry_of(op)) for op in module.body.block.ops if isinstance(op, FuncOp)]
    blocks = re.split(r"^\w+:", functions_text(functions, processor(), True)[0], flags=re.MULTILINE)
    (loop,) = [block for block in blocks if "fmul <" in block]
    (row,) = [block for block in blocks if "fadd float" in block]
    assert row is not loop
    x, y, z = (np.linspace(-1, 1, n, dtype=np.float32) for n in (64 * 64, 64, 64))
    _both(moved_rows, [x, y, z, np.zeros(64 * 64, np.float32)], BLOCK=64)


def test_llvm_makes_code_for_another_architecture_of_the_same_writer() -> None:
    """Which cannot run here: it has no row, intrinsic or vector that is one architecture's alone."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    other = Processor("aarch64-unknown-linux-gnu", "neoverse-n1", frozenset({"neon", "fp-armv8", "lse", "fullfp16"}))
    signature = {"x": "*fp16", "out": "*fp16", "n": "i32"}
    module = parse(tilefw.compile(swaps, target="reference", signature=signature, constexprs={"BLOCK": 64}).text, "swaps")
    text, _ = functions_text([(op, entry_of(op)) for op in module.body.block.ops if isinstance(op, FuncOp)], other, False)
    assert "ret" in assembly_of(text, other) and object_of(text, other)[18:20] == b"\xb7\x00"  # EM_AARCH64


@pytest.mark.parametrize("number", range(12))
def test_random_programs_agree_with_the_reference(number: int) -> None:
    outcome = run(numbered(7, 5 * number), "cpu-native")  # every fifth: rows and tile operations take turns
    assert outcome.status == "pass", outcome.message()


# No gap of eight pages is left above eight reserved gibibytes: a page of code stands above them, its table of 64 pages below.
FAR_APART = """
import ctypes, mmap
from tilefw_cpu.compile import NativeCode, object_of
from tilefw_cpu.processor import processor

system = ctypes.CDLL(None)
system.mmap.restype = ctypes.c_void_p
system.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
NOWHERE, NONE, UNBACKED = None, 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000

def reserved(size):
    return system.mmap(NOWHERE, size, NONE, UNBACKED, -1, 0)

table = f"@table = private constant [65536 x i32] [{', '.join(f'i32 {n}' for n in range(65536))}]"
data = object_of(table + chr(10) + chr(10).join((
    'define i32 @"tilefw.k"(i64 %i) {', "%at = getelementptr [65536 x i32], ptr @table, i64 0, i64 %i",
    "%found = load i32, ptr %at", "ret i32 %found", "}",
)), processor())
far = reserved(8 << 30)
while reserved(8 * mmap.PAGESIZE) > far:
    pass
code = NativeCode(data, processor())
function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int64)(code.address("k"))
print([function(n) for n in (0, 7, 65535)])
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="gaps are made as Linux fills them")
def test_code_finds_its_constants_wherever_they_stand() -> None:
    """A table of constants that is read by an index: an address of 32 bits would end the process (MCJIT asserts)."""
    ended = subprocess.run([sys.executable, "-c", FAR_APART], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout) == (0, "[0, 7, 65535]\n"), ended.stderr


def test_code_reads_a_table_of_constants() -> None:
    text = (
        "@table = private constant [64 x i32] [" + ", ".join(f"i32 {n * n}" for n in range(64)) + "]\n"
        'define i32 @"tilefw.k"(i64 %i) {\n%at = getelementptr [64 x i32], ptr @table, i64 0, i64 %i\n'
        "%found = load i32, ptr %at\nret i32 %found\n}\n"
    )
    here = processor()
    if here.triple.startswith("x86_64"):
        assert "movabs" in assembly_of(text, here)
    code = NativeCode(object_of(text, here), here)
    function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int64)(code.address("k"))
    assert [function(n) for n in (0, 7, 63)] == [0, 49, 3969]


def test_the_ir_and_the_assembly_of_a_kernel_are_told_apart(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    from tilefw.cli.main import main

    told = {}
    for level in ("llvm", "asm", "bin"):
        assert main(["compile", "vector_add", "--target", "cpu", "--emit", level]) == 0
        told[level] = capsysbinary.readouterr().out
    assert b"define internal i32" in told["llvm"] and b"getelementptr" in told["llvm"]
    assert b"tilefw.vector_add:" in told["asm"] and b"getelementptr" not in told["asm"] and b".ltext" in told["asm"]
    assert told["bin"].startswith(b"\x7fELF")
    assert main(["compile", "vector_add", "--target", "cpu", "--emit", "lane"]) == 1
    assert b"has no level 'lane'" in capsysbinary.readouterr().err
    assert main(["compile", "vector_add", "--target", "reference", "--emit", "lane"]) == 1
    assert b"its levels are tile, asm" in capsysbinary.readouterr().err


def test_code_of_a_processor_with_other_features_has_another_key(monkeypatch: pytest.MonkeyPatch) -> None:
    from tilefw_cpu import processor as at_hand

    backend = find_target("cpu").backend
    here, older = backend.toolchain_digest(), replace(processor(), features=frozenset({"sse2"}))
    monkeypatch.setattr(at_hand, "processor", lambda: older)
    assert processor().digest in here and older.digest in backend.toolchain_digest() and older.digest not in here
