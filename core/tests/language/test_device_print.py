"""`tl.device_print` and `print`: the lines of Triton's device code, in the order of programs, on every target that serves them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
from tilefw.api.errors import CheckError, CompileError, KernelError, UnsupportedError, UsageError
from tilefw.print_records import PrintedOperand, PrintSite, from_text, to_text
from tilefw.runtime.plugins.loader import find_target


@tilefw.jit
def lines(x_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.device_print("x", x)
    tl.device_print("wide:", x.to(tl.int64) - 5, x.to(tl.uint8), x.to(tl.float32).to(tl.float8e5))
    if tl.program_id(1) == 1:
        print("only here")
        for i in range(2):
            print("", i, x > 1)


@tilefw.jit
def hexadecimal(x_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.device_print("x ", x, hex=True)
    tl.device_print("h ", x.to(tl.float16), hex=True)
    tl.device_print("i ", (tl.arange(0, 16) - 1).to(tl.int16)[None, :], hex=True)


@tilefw.jit
def counted(x_ptr, out_ptr, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + at)
    print("x", x)
    tl.store(out_ptr + at, x)


@tilefw.jit(debug=True)
def failing(x_ptr):
    x = tl.load(x_ptr)
    print("before", x)
    assert x > 0
    print("after", x)


@tilefw.jit
def pointers(x_ptr, N: tl.constexpr):
    tl.device_print("at", x_ptr + tl.arange(0, N))


@tilefw.jit
def mistaken(x_ptr):
    print(tl.load(x_ptr))


def test_a_line_for_each_element_in_the_order_of_the_programs(target: str, capsys: Any) -> None:
    lines[(1, 2)](np.array([0, 1, 2, 300], np.int32), N=4)
    expected = []
    for y in (0, 1):
        head = f"pid (0, {y}, 0) idx"
        expected += [f"{head} ({i}) x: {x}" for i, x in enumerate((0, 1, 2, 300))]
        for number, values in enumerate(((-5, -4, -3, 295), (0, 1, 2, 44), ("0.000000", "1.000000", "2.000000", "320.000000"))):
            expected += [f"{head} ({i}) wide: (operand {number}) {value}" for i, value in enumerate(values)]
    expected += ["pid (0, 1, 0) only here"]
    for i in (0, 1):
        expected += [f"pid (0, 1, 0) idx (): (operand 0) {i}"]
        expected += [f"pid (0, 1, 0) idx ({j}): (operand 1) {value}" for j, value in enumerate((0, 0, 1, 1))]
    assert capsys.readouterr().out.splitlines() == expected


def test_hex_is_as_c_writes_it(target: str, capsys: Any) -> None:
    values = np.array([1.0, 1.5, 0.1, -0.0, np.inf, -np.inf, 6.0, 2.0**-149], np.float32)
    hexadecimal[(1,)](values, N=8)
    shown = [line.split(": ")[1] for line in capsys.readouterr().out.splitlines()]
    assert shown[:8] == ["0x1p+0", "0x1.8p+0", "0x1.99999ap-4", "-0x0p+0", "inf", "-inf", "0x1.8p+2", "0x1p-149"]
    assert shown[8:16] == ["0x1p+0", "0x1.8p+0", "0x1.998p-4", "-0x0p+0", "inf", "-inf", "0x1.8p+2", "0x0p+0"]
    assert shown[16:] == ["0xffff", *(f"0x{i:04x}" for i in range(15))]


def test_indices_are_as_wide_as_the_largest(target: str, capsys: Any) -> None:
    counted[(2,)](np.arange(256, dtype=np.int32), np.zeros(256, np.int32), N=128)
    shown = capsys.readouterr().out.splitlines()
    assert shown == [f"pid ({i // 128}, 0, 0) idx ({i % 128:3}) x: {i}" for i in range(256)]


def test_what_finds_no_room_is_counted(target: str, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEFW_PRINT_BYTES", "1100")  # a record of 128 integers has 528 bytes
    out = np.zeros(1024, np.int32)
    with pytest.warns(RuntimeWarning, match="6 prints of counted are lost: the 1088 bytes"):
        counted[(8,)](np.arange(1024, dtype=np.int32), out, N=128)
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) == 256 and all(re.fullmatch(r"pid \(\d, 0, 0\) idx \([ \d]{3}\) x: \d+", line) for line in shown)
    np.testing.assert_array_equal(out, np.arange(1024))


def test_a_launch_that_fails_shows_what_was_printed_before(target: str, capsys: Any) -> None:
    with pytest.raises(CheckError, match="TFW0812"):
        failing[(1,)](np.zeros(1, np.int32))
    assert capsys.readouterr().out.splitlines()[0] == "pid (0, 0, 0) idx () before: 0"


def test_pointers_are_addresses_an_element_apart(target: str, capsys: Any) -> None:
    pointers[(1,)](np.zeros(4, np.float64), N=4)
    found = [int(line.split(": ")[1], 16) for line in capsys.readouterr().out.splitlines()]
    assert [address - found[0] for address in found] == [0, 8, 16, 24] and found[0] % 16 == 0


def test_a_kernel_loaded_from_a_file_prints_too(tmp_path: Any, target: str, capsys: Any) -> None:
    signature = {"x_ptr": "*i32", "out_ptr": "*i32"}
    tilefw.compile(counted, target, signature, {"N": 4}).save(tmp_path / "counted.tilefw")
    loaded = tilefw.load(tmp_path / "counted.tilefw").only()
    loaded.launch((1,), [np.arange(4, dtype=np.int32), np.zeros(4, np.int32)])
    assert capsys.readouterr().out.splitlines()[3] == "pid (0, 0, 0) idx (3) x: 3"


def test_a_kernel_without_prints_has_no_hidden_parameter(target: str) -> None:
    @tilefw.jit
    def silent(x_ptr):
        tl.store(x_ptr, 1)

    artifact = tilefw.compile(silent, target, {"x_ptr": "*i32"})
    assert [p.hidden for p in artifact.entry().parameters] == [None] and "prints" not in artifact.metadata


def test_a_chip_that_cannot_print_says_so() -> None:
    try:
        find_target("spatial-sdm1")
    except KernelError:
        pytest.skip("spatial-sdm1 is not installed")
    with tilefw.target("spatial-sdm1"), pytest.raises(UnsupportedError, match="spatial-sdm1 does not serve print"):
        counted[(1,)](np.zeros(4, np.int32), np.zeros(4, np.int32), N=4)


def test_the_text_comes_first() -> None:
    with pytest.raises(CompileError, match=r"the prefix of tl\.device_print is a string, not int32"):
        mistaken[(1,)](np.zeros(1, np.int32))


def test_the_room_is_a_number_of_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEFW_PRINT_BYTES", "much")
    with pytest.raises(UsageError, match="TILEFW_PRINT_BYTES is a number of bytes"):
        counted[(1,)](np.zeros(4, np.int32), np.zeros(4, np.int32), N=4)


def test_sites_read_back_from_their_text() -> None:
    sites = (PrintSite(" x: ", True, (PrintedOperand("fp16", (2, 4)), PrintedOperand("pointer", ()))), PrintSite("", False, ()))
    assert from_text(to_text(sites)) == sites
    assert sites[0].offsets == (16, 32) and sites[0].nbytes == 48 and sites[1].nbytes == 16
