"""Bytecode of CUDA Tile IR, written by hand: what is read, what it computes, and what is refused, with its place."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tilefw
from tilefw.api.errors import IRError, KernelError, UnsupportedError
from tilefw.cli.main import main
from tilefw.importers.cutile import parse
from tilefw.testing import tile_bytecode as bw

N = 40


def run(data: bytes, grid: tuple[int, ...], arguments: list[object], target: str = "reference") -> None:
    tilefw.load(data, target).only().launch(grid, arguments)


@pytest.mark.parametrize("target", ["reference", "nvidia-sm80", "amd-cdna3", "spatial-sdm1"])
def test_vector_add_takes_arrays_and_ends_within_them(target: str, tmp_path: Path) -> None:
    """A file is known by its first bytes, whatever it is called."""
    file = tmp_path / "add.anything"
    file.write_bytes(bw.vector_add("add"))
    a, b, c = np.arange(N, dtype=np.float32), np.full(N, 2, np.float32), np.full(N + 1, -1, np.float32)
    tilefw.load(file, target)["add"].launch((3,), [a, b, c[:N]])
    assert (c[:N] == a + 2).all() and c[N] == -1


def test_a_kernel_may_be_given_every_parameter() -> None:
    a, b, c = np.ones(16, np.float32), np.ones(16, np.float32), np.zeros(16, np.float32)
    run(bw.vector_add(), (1,), [a, 16, 1, b, 8, 1, c, 16, 1])
    assert c.tolist() == [2.0] * 8 + [1.0] * 8  # what lies outside reads as zero


def test_a_mangled_name_says_which_parameters_are_arrays() -> None:
    artifact = tilefw.load(bw.vector_add("my_add_K1_A1f32_1t1_p16_A1f32_A1f32_I16")).artifact
    assert artifact.entry().name == "my_add"
    assert [p.name for p in artifact.entry().parameters if p.hidden is None] == ["arg0", "arg1", "arg2"]
    other = tilefw.load(bw.vector_add("my_add_K1_A2f32_Sf32")).artifact.entry()  # does not fit: the views say it
    assert other.name == "my_add" and [p.name for p in other.parameters if p.hidden is None] == ["arg0", "arg1", "arg2"]


@pytest.mark.parametrize(("array", "message"), [
    (np.zeros(32, np.float32)[::2], "stride 2 along axis 0, and the kernel was compiled for 1"),
    (np.float32(1), "is a pointer"), (None, "not a null pointer"), (np.zeros((), np.float32), "has 0 axes"),
])
def test_an_array_that_the_kernel_was_not_made_for_is_refused(array: object, message: str) -> None:
    with pytest.raises(tilefw.KernelError, match=message):
        run(bw.vector_add(), (1,), [array, np.zeros(16, np.float32), np.zeros(16, np.float32)])


def test_the_commands_take_a_file_of_bytecode(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "add"
    file.write_bytes(bw.vector_add("add"))
    assert main(["compile", str(file), "--target", "nvidia-sm80", "--emit", "tile"]) == 0
    assert "func.func public @add" in capsys.readouterr().out
    assert main(["run", str(file)]) == 2 and "launch file" in capsys.readouterr().err


def test_every_prefix_is_refused_at_an_offset() -> None:
    data = bw.vector_add()
    for length in range(8, len(data)):
        with pytest.raises((IRError, UnsupportedError), match=r"byte \d+") as caught:
            parse(data[:length], "add.tilebc")
        assert caught.value.code in ("TFW0407", "TFW0408")


def test_a_changed_byte_never_ends_in_anything_but_an_error() -> None:
    """Or in another kernel."""
    data, outcomes = bw.vector_add(), {"kernel": 0, "error": 0}
    for at in range(0, len(data)):
        changed = bytearray(data)
        changed[at] ^= (0x01, 0x80, 0xFF, 0x40)[at % 4]
        try:
            parse(bytes(changed))
            outcomes["kernel"] += 1
        except KernelError as error:
            assert error.code and error.place is not None
            outcomes["error"] += 1
    assert min(outcomes.values()) > 10


@pytest.mark.parametrize(("data", "code", "message"), [
    (bw.vector_add(version=(13, 5)), "TFW0408", "version 13.5 of Tile IR bytecode is not imported"),
    (bw.vector_add(version=(12, 1)), "TFW0408", "version 12.1"),
    (bw.vector_add()[:10] + b"\x01\x00" + bw.vector_add()[12:], "TFW0408", "preview"),
    (bw.vector_add(rounding=1), "TFW0408", "addf that rounds by zero is not imported"),
    (bw.vector_add(rounding=9), "TFW0407", "there is no rounding 9"),
    (bw.vector_add() + b"\x00", "TFW0407", "1 bytes are left over"),
])
def test_what_is_not_known_is_refused_by_name(data: bytes, code: str, message: str) -> None:
    with pytest.raises(KernelError, match=message) as caught:
        parse(data, "k.tilebc")
    assert caught.value.code == code and caught.value.place is not None and "k.tilebc, byte" in str(caught.value.place)


@pytest.mark.parametrize(("opcode", "message"), [
    (124, "multimem_reduce_view_tko of Tile IR is not imported"), (55, "no operation 55"),
])
def test_an_unknown_operation_is_refused_by_its_name_or_number(opcode: int, message: str) -> None:
    w = bw.BytecodeText()
    w.op(opcode)
    with pytest.raises(UnsupportedError, match=message):
        parse(w.bytes())


def stored(write: object, arguments: tuple[int, ...], target: str = "reference") -> list[int]:
    """What a kernel of an i32 pointer and some i32 numbers stores behind the pointer, by a function that gives the values."""
    w = bw.BytecodeText()
    integer = w.scalar(bw.I32)
    pointer, token = w.pointer(bw.I32), w.type(bw.TOKEN)
    w.takes(pointer, *[integer] * len(arguments))
    found = write(w, *range(1, 1 + len(arguments)))  # type: ignore[operator]
    for index, value in enumerate(found):
        at = w.op(81, [pointer], bw.values(0, w.integer(index)))
        w.op(101, [token], b"\x00\x00" + bw.values(at, value))
    w.op(92, (), bw.varint(0), counted=True)
    out = np.full(len(found), -99, np.int32)
    tilefw.load(w.bytes(), target).only().launch((1,), [out, *arguments])
    return out.tolist()


SIGNED, ZERO, DOWN, UP = 1, 1, 2, 3


def test_integers_divide_down_up_and_towards_zero() -> None:
    def write(w: bw.BytecodeText, left: int, right: int) -> list[int]:
        return [w.op(21, [w.scalar(bw.I32)], bytes([SIGNED, rounding]) + bw.values(left, right)) for rounding in (ZERO, DOWN, UP)]

    for left, right in ((7, 2), (-7, 2), (7, -2), (-7, -2), (6, 3), (-6, 3), (0, 5), (-(1 << 31), 2)):
        exact = left / right
        assert stored(write, (left, right)) == [int(exact), int(np.floor(exact)), int(np.ceil(exact))], (left, right)


@pytest.mark.parametrize("target", ["reference", "nvidia-sm80", "amd-cdna3"])
def test_a_loop_is_left_from_within_branches(target: str) -> None:
    """Steps of the Collatz sequence to 1, at most `limit`; what follows a branch runs on the ways that it leaves open."""

    def write(w: bw.BytecodeText, start: int, limit: int) -> list[int]:
        integer, truth = w.scalar(bw.I32), w.scalar(bw.I1)
        zero, one, two, three = (w.integer(number) for number in range(4))

        def yields(*given: int) -> None:
            w.op(109, (), bw.varint(len(given)) + bw.values(*given), counted=True)

        def body(value: int, steps: int) -> None:
            done = w.op(15, [truth], b"\x00\x01" + bw.values(value, one))
            w.nested(50, [], bw.values(done), [lambda: leave(steps), yields], [])
            more = w.op(3, [integer], b"\x00" + bw.values(steps, one))
            late = w.op(15, [truth], b"\x04\x01" + bw.values(more, limit))
            w.nested(50, [], bw.values(late), [lambda: leave(w.op(104, [integer], b"\x00" + bw.values(zero, one))), yields], [])
            odd = w.op(90, [integer], b"\x01" + bw.values(value, two))
            is_odd = w.op(15, [truth], b"\x00\x01" + bw.values(odd, one))

            def when_odd() -> None:
                times = w.op(78, [integer], b"\x00" + bw.values(value, three))
                w.op(17, (), bw.varint(2) + bw.values(w.op(3, [integer], b"\x00" + bw.values(times, one)), more), counted=True)

            def when_even() -> None:
                yields(w.op(21, [integer], b"\x01\x01" + bw.values(value, two)))

            half = w.nested(50, [integer], bw.values(is_odd), [when_odd, when_even], [])
            w.op(17, (), bw.varint(2) + bw.values(half, more), counted=True)

        def leave(value: int) -> None:
            w.op(10, (), bw.varint(1) + bw.values(value), counted=True)

        return [w.nested(65, [integer], bw.varint(2) + bw.values(start, zero), [body], [integer, integer])]

    assert [stored(write, (start, 200), target)[0] for start in (1, 6, 27)] == [0, 8, 111]
    assert stored(write, (27, 50), target) == [-1]


def barriers(tokens: bool) -> int:
    """Of a kernel that stores a tile and loads it again, behind the store or not."""
    w = bw.BytecodeText()
    pointer, integer, token, tile = w.pointer(bw.F32), w.scalar(bw.I32), w.type(bw.TOKEN), w.tile(bw.F32, (16,))
    array, view = w.tiles(bw.F32, (16,), (1,))
    w.takes(pointer, integer, integer)
    start, zero = w.op(68, [token]), w.integer(0)
    made = w.op(66, [view], bw.values(w.op(67, [array], bw.values(0, 1, 1, 0), counted=True)))
    ones = w.constant(tile, b"\x00\x00\x80\x3f")
    after = w.op(102, [token], b"\x04\x00" + bw.values(ones, made, 1, zero, start), counted=True)
    for _ in range(2):
        w.op(62, [tile, token], b"\x04\x00" + bw.values(made, 1, zero, after if tokens else start), counted=True)
    w.op(92, (), bw.varint(0), counted=True)
    return str(parse(w.bytes())).count("tile.barrier")


def test_a_load_behind_a_store_is_behind_one_barrier() -> None:
    assert barriers(True) == 1 and barriers(False) == 0
