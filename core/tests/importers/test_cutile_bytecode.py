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


def stored(
    write: object, arguments: tuple[int, ...], target: str = "reference", version: tuple[int, int] = (13, 3)
) -> list[int]:
    """What a kernel of an i32 pointer and some i32 numbers stores behind the pointer, by a function that gives the values."""
    w = bw.BytecodeText("kernel", version)
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


def yields(w: bw.BytecodeText, *given: int) -> None:
    w.op(109, (), bw.varint(len(given)) + bw.values(*given), counted=True)


def leaves(w: bw.BytecodeText, *given: int) -> None:
    w.op(10, (), bw.varint(len(given)) + bw.values(*given), counted=True)


def repeats(w: bw.BytecodeText, *given: int) -> None:
    w.op(17, (), bw.varint(len(given)) + bw.values(*given), counted=True)


def add(w: bw.BytecodeText, left: int, right: int) -> int:
    return w.op(3, [w.scalar(bw.I32)], b"\x00" + bw.values(left, right))


def test_what_follows_an_inner_branch_leaves_the_numbers_of_its_other_side() -> None:
    """If a: 100, but where b is 0 the loop ends with a + 10, which was made before the inner branch; 200 more otherwise."""

    def write(w: bw.BytecodeText, a: int, b: int) -> list[int]:
        integer, truth = w.scalar(bw.I32), w.scalar(bw.I1)
        zero, ten, hundred = w.integer(0), w.integer(10), w.integer(100)

        def body() -> None:
            outer = w.op(15, [truth], b"\x01\x01" + bw.values(a, zero))

            def when_a() -> None:
                number = add(w, a, ten)
                inner = w.op(15, [truth], b"\x01\x01" + bw.values(b, zero))
                w.nested(50, [], bw.values(inner), [lambda: yields(w), lambda: leaves(w, number)], [])
                yields(w, hundred)

            found = w.nested(50, [integer], bw.values(outer), [when_a, lambda: yields(w, zero)], [])
            more = add(w, found, hundred)
            leaves(w, add(w, more, hundred))

        return [w.nested(65, [integer], bw.varint(0), [body], [])]

    assert [stored(write, given)[0] for given in ((1, 1), (1, 0), (0, 0))] == [300, 11, 200]


def leaving(branches: int, deep: bool) -> bytes:
    """A loop with branches that leave it: one after the other (`deep`), or each of two sides of which one holds another one."""
    w = bw.BytecodeText()
    (condition,) = w.takes(w.scalar(bw.I1))

    def two_ways() -> None:
        w.nested(50, [], bw.values(condition), [lambda: yields(w), lambda: leaves(w)], [])
        yields(w)

    def body() -> None:
        for _ in range(branches):
            w.nested(50, [], bw.values(condition), [(lambda: yields(w)) if deep else two_ways, lambda: leaves(w)], [])
            if not deep:
                w.nested(50, [], bw.values(condition), [two_ways, two_ways], [])
        leaves(w)

    w.nested(65, [], bw.varint(0), [body], [])
    w.op(92, (), bw.varint(0), counted=True)
    return w.bytes()


def test_branches_that_leave_are_counted_and_do_not_nest_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnsupportedError, match="nested too deeply to import") as caught:
        parse(leaving(400, True))
    assert caught.value.code == "TFW0408"
    monkeypatch.setattr("tilefw.importers.cutile.bytecode_translation._OPERATIONS", 200)
    with pytest.raises(UnsupportedError, match="too large"):
        parse(leaving(9, False))


def test_a_view_claims_no_parameters_that_are_not_its_own() -> None:
    w = bw.BytecodeText()
    pointer, tile = w.pointer(bw.F32), w.tile(bw.F32, (16,))
    array = w.type(b"\x0e" + bw.varint(w.type(bw.F32)) + bw.listed([16], 8) + bw.listed([1], 8))
    view = w.type(b"\x0f\x01" + bw.listed([16], 4) + bw.varint(array) + bw.listed([0], 4) + b"\x00")
    w.takes(pointer)
    made = w.op(66, [view], bw.values(w.op(67, [array], bw.values(0) + bw.varint(0) + bw.varint(0), counted=True)))
    token = w.type(bw.TOKEN)
    zero = w.integer(0)
    ones = w.constant(tile, b"\x00\x00\x80\x3f")
    w.op(102, [token], b"\x00\x00" + bw.values(ones, made, 1, zero), counted=True)
    w.op(92, (), bw.varint(0), counted=True)
    out = np.zeros(16, np.float32)
    run(w.bytes(), (1,), [out])
    assert (out == 1).all()


@pytest.mark.parametrize("name", ["k_Kt1_LA1f32_1t1_A1f32", "k_K1_A1f32_Lg0iA1f32", "k_Kt2_Lg1A2f16"])
def test_a_list_of_arrays_is_refused(name: str) -> None:
    with pytest.raises(UnsupportedError, match="a list of arrays"):
        parse(bw.vector_add(name))


@pytest.mark.parametrize(("name", "plain"), [(f"k_Kt1_A{'9' * 5000}f32", "k"), ("do_Kind_A1f32", "do_Kind_A1f32")])
def test_a_name_that_is_not_mangled_is_kept(name: str, plain: str) -> None:
    text = str(parse(bw.vector_add(name)))
    assert f"@{plain}(" in text and "arg2_stride0" in text


def assumed(*divisors: int, under: bool = False, singleton: bool = False) -> str:
    """The kernel that assumes divisors of its second parameter: under a branch, or as the stride of an axis of one element."""
    w = bw.BytecodeText()
    pointer, integer = w.pointer(bw.F32), w.scalar(bw.I32)
    array = w.type(b"\x0e" + bw.varint(w.type(bw.F32)) + bw.listed([1], 8) + bw.listed([bw.DYNAMIC], 8))
    w.takes(pointer, integer, w.scalar(bw.I1))

    def facts() -> int:
        return [w.op(6, [integer], b"\x08" + bw.varint(by) + b"\x00" + bw.values(1)) for by in divisors][-1]

    def side() -> None:
        facts()
        yields(w)

    if under:
        w.nested(50, [], bw.values(2), [side, lambda: yields(w)], [])
    else:
        last = facts()
        if singleton:
            w.op(67, [array], bw.values(0) + bw.varint(0) + bw.varint(1) + bw.values(last), counted=True)
    w.op(92, (), bw.varint(0), counted=True)
    return str(parse(w.bytes()))


def test_a_divisor_is_a_fact_where_it_holds_everywhere() -> None:
    assert "tile.divisible = 48 : i64" in assumed(16, 3)
    assert "tile.divisible = 16 : i64" in assumed(16, (1 << 61) + 1) and "tile.divisible" in assumed(*[(1 << 31) - 1, 3, 5])
    assert "tile.divisible" not in assumed(16, under=True) + assumed(4, singleton=True)


def converted(opcode: int, attributes: bytes, source: bytes, target: bytes, bits: int, wide: int = 32) -> int:
    """The bits of a conversion's result: of a number of `wide` bits, given by its bits."""
    whole = {16: b"\x02", 32: bw.I32, 64: bw.I64}
    size = 16 if target in (b"\x05", b"\x06") else 32

    def write(w: bw.BytecodeText) -> list[int]:
        given = w.constant(w.scalar(whole[wide]), bits.to_bytes(wide // 8, "little"))
        value = given if source in whole.values() else w.op(9, [w.scalar(source)], bw.values(given))
        made = w.op(opcode, [w.scalar(target)], attributes + bw.values(value))
        if target == b"\x08":
            made = w.op(42, [w.scalar(bw.F32)], b"\x00" + bw.values(made))
        found = w.op(9, [w.scalar(whole[size])], bw.values(made))
        return [found if size == 32 else w.op(37, [w.scalar(bw.I32)], b"\x00" + bw.values(found))]

    return stored(write, ())[0]


F16, BF16, TF32, F64 = b"\x05", b"\x06", b"\x08", b"\x09"


def test_conversions_round_once_and_the_way_they_say() -> None:
    assert converted(42, b"\x01", F16, BF16, 0x3FFF, 16) == 0x3FFF  # 1.9990 towards zero, rather than 2
    assert converted(42, b"\x01", BF16, F16, 0x7F7F, 16) == 0x7BFF  # the largest number, not infinity
    above = int(np.float64(1 + 2**-11 + 2**-40).view(np.uint64))  # just above the middle: float32 is the middle
    assert converted(42, b"\x00", F64, TF32, above, 64) == 0x3F802000
    assert converted(42, b"\x01", F64, TF32, above, 64) == 0x3F800000
    assert converted(42, b"\x00", F64, TF32, 0x7FF0000000000000, 64) == 0x7F800000
    signed, unsigned = b"\x01\x00", b"\x00\x00"
    for number in (0, 1, 4099, (1 << 30) + (1 << 19) + 1, (1 << 30) + (1 << 19)):
        due = nearest_of_eleven_bits(number)
        assert converted(59, signed, bw.I32, TF32, number) == due, number
    for number in ((1 << 62) + (1 << 51) + 1, (1 << 63) + (1 << 52) + 1, (1 << 41) + (1 << 30) + 1):
        assert converted(59, unsigned, bw.I64, TF32, number, 64) == nearest_of_eleven_bits(number), number
    assert np.int32(converted(59, signed, bw.I32, TF32, (1 << 32) - (1 << 30) - (1 << 19) - 1)) == np.float32(
        -(2**30) - 2**20
    ).view(np.int32)


def nearest_of_eleven_bits(number: int) -> int:
    """The bits of the float32 that is the nearest number of 11 bits, ties to even."""
    cut = max(number.bit_length() - 11, 0)
    quotient, rest, middle = number >> cut, number & ((1 << cut) - 1), (1 << cut) >> 1
    up = cut > 0 and (rest > middle or (rest == middle and quotient & 1))
    return int(np.float32((quotient + up) << cut).view(np.int32))


def test_a_whole_power_keeps_the_sign_of_an_odd_exponent() -> None:
    """Which a float of 16 bits does not tell from an even one."""

    def write(w: bw.BytecodeText, exponent: int) -> list[int]:
        half = w.scalar(F16)
        minus_one = w.constant(half, b"\x00\xbc")
        found = w.op(121, [half], bw.values(minus_one, exponent))
        return [w.op(37, [w.scalar(bw.I32)], b"\x00" + bw.values(w.op(9, [w.scalar(b"\x02")], bw.values(found))))]

    assert [stored(write, (exponent,), version=(13, 4))[0] for exponent in (4097, 4098, -4097)] == [0xBC00, 0x3C00, 0xBC00]


def parsed(write: object, version: tuple[int, int] = (13, 3)) -> str:
    """The tile IR of a kernel without parameters."""
    w = bw.BytecodeText("kernel", version)
    write(w)  # type: ignore[operator]
    w.op(92, (), bw.varint(0), counted=True)
    return str(parse(w.bytes()))


def test_roots_and_quotients_of_16_bits_are_those_of_float32() -> None:
    """By the rows that are correctly rounded: others are approximate on chips."""

    def write(w: bw.BytecodeText, rounding: bytes) -> None:
        half = w.scalar(F16)
        value = w.constant(half, b"\x00\x40")
        w.op(20, [half], b"\x00" + rounding + bw.values(value, w.op(100, [half], b"\x00" + rounding + bw.values(value))))

    nearest, approximate = parsed(lambda w: write(w, b"\x00")), parsed(lambda w: write(w, b"\x04"))
    assert "div_rn" in nearest and "sqrt_rn" in nearest and "_rn" not in approximate


@pytest.mark.parametrize(("count", "data", "due"), [
    (16, b"\xff\xff", "true"), (4, b"\x0f", "true"), (16, b"\x00\x00", "false"), (4, b"\xff", "true"), (64, b"\xff", "true"),
])
def test_truth_values_that_are_all_one_are_a_constant(count: int, data: bytes, due: str) -> None:
    text = parsed(lambda w: w.constant(w.tile(bw.I1, (count,)), data))
    assert due in text


@pytest.mark.parametrize(("write", "message"), [
    (lambda w: w.constant(w.tile(bw.I1, (16,)), b"\xff\x7f"), "whose elements differ"),
    (lambda w: w.op(23, [w.scalar(bw.F32)], b"\x01" + bw.values(w.constant(w.scalar(bw.F32), bytes(4)))), "exp that rounds by z"),
    (lambda w: w.constant(w.tile(b"\x13", (16,)), b"\x00"), "tiles of f4E2M1FN"),
    (lambda w: w.tile(bw.F32, (1,) * 33), "33 of them"),
])
def test_a_refusal_has_its_place(write: object, message: str) -> None:
    with pytest.raises(KernelError, match=message) as caught:
        parsed(write)
    assert caught.value.place is not None and not str(caught.value.place).startswith("<bytes>, byte 0")


def test_a_percent_sign_is_printed() -> None:
    def write(w: bw.BytecodeText) -> None:
        w.strings.append(b"100%% of %i")
        w.op(85, [w.type(bw.TOKEN)], b"\x00\x01" + bw.varint(1) + bw.values(w.integer(3)), counted=True)

    assert "100% of" in parsed(write)
