"""Launch files: what is right is read as written, and every mistake is told with its line."""

from __future__ import annotations

import ctypes
import math

import numpy as np
import pytest

from tilefw.api import CodeError, Scalar, Struct
from tilefw.runtime import launchfile
from tilefw.runtime.arguments.arrays import TypedArray
from tilefw.runtime.launchfile import number


@pytest.fixture
def write(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(6, dtype=np.float32).reshape(2, 3).T)
    np.save(tmp_path / "codes.npy", np.arange(4, dtype=np.uint8))
    np.savez(tmp_path / "two.npz", a=np.zeros(1), b=np.zeros(1))
    (tmp_path / "broken.npy").write_bytes(b"\x93NUMPY\x01\x00garbage")
    np.save(tmp_path / "objects.npy", np.array([{}], object), allow_pickle=True)

    def make(text):
        path = tmp_path / "launch.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    return make


def test_the_whole_of_the_format(write):
    launch = launchfile.read(write("""
kernel: matmul_kernel          # entry
grid: [16, 1, 0x2]
block: [128, 1, 1]
dynamic_shared: 49_152
args:
  - {in: a.npy}
  - {out: c, shape: [2, 3], dtype: float16, fill: nan}
  - {inout: a.npy, name: d}
  - {value: 512, dtype: i32}
  - {value: 1e-05, dtype: f32}
  - {value: -1, dtype: u32}
  - {pointer: 0}
  - {in: codes.npy, dtype: fp8e4b15}
  - {out: e, shape: 4, dtype: bf16}
"""))
    assert (launch.kernel, launch.grid, launch.block, launch.dynamic_shared) == ("matmul_kernel", (16, 1, 2), (128, 1, 1), 49152)
    a, c, d, n, eps, bits, null, codes, e = launch.args
    assert a.flags.c_contiguous and a.shape == (3, 2)
    assert c.dtype == np.float16 and np.isnan(c).all()
    assert (n, eps, bits, null) == (Scalar(512, "int32"), Scalar(1e-05, "fp32"), Scalar(2**32 - 1, "uint32"), None)
    assert isinstance(codes, TypedArray) and codes.element.name == "fp8e4b15"
    assert list(launch.outputs) == ["c", "d", "e"] and launch.outputs["d"] is d and str(launch.outputs["e"].dtype) == "bfloat16"
    assert e is launch.outputs["e"] and not e.any()


@pytest.mark.parametrize(
    "text, value",
    [
        ("1e-05", 1e-05), ("1E5", 1e5), ("0x10", 16), ("-0x10", -16), ("0b101", 5), ("0o17", 15), ("017", 17), ("1_000", 1000),
        (".5", 0.5), ("5.", 5.0), ("-3", -3), ("+3", 3), ("inf", math.inf), ("-inf", -math.inf), (".inf", math.inf),
        ("1e400", math.inf), ("yes", None), ("1:30", None), ("0x", None), ("1e", None), ("", None), ("--1", None),
        ("infinite", None), ("1 2", None),
    ],
)
def test_numbers_as_yaml_1_2_and_python_write_them(text, value):
    assert number(text) == value and type(number(text)) is type(value)


def test_nan_is_a_number():
    assert all(math.isnan(number(text)) for text in ("nan", ".nan", "NaN", ".NaN"))


HEAD = "grid: [1]\nargs:\n"


@pytest.mark.parametrize(
    "text, code, line, words",
    [
        ("", "TFW0932", None, "is empty"),
        ("[1, 2]", "TFW0932", 1, "not a mapping"),
        ("grid: [1\nargs: []", "TFW0931", 2, "not YAML"),
        ("grid: [1]\n\tx: 2", "TFW0931", 2, "not YAML"),
        (b"grid: [1]\n\xff\xfe", "TFW0931", None, "not UTF-8"),
        ("grid: [1]", "TFW0932", 1, "lacks 'args'"),
        ("args: []", "TFW0932", 1, "lacks 'grid'"),
        ("grid: [1]\nargs: []\ngird: [2]", "TFW0932", 3, "did you mean 'grid'"),
        ("grid: [1]\ngrid: [2]\nargs: []", "TFW0932", 2, "twice"),
        ("grid: [1, 2, 3, 4]\nargs: []", "TFW0933", 1, "one to three"),
        ("grid: [0]\nargs: []", "TFW0933", 1, "from 1 on"),
        ("grid: [x]\nargs: []", "TFW0933", 1, "is a number"),
        ("grid: ['1']\nargs: []", "TFW0933", 1, "is a number"),
        ("grid: [1.5]\nargs: []", "TFW0933", 1, "whole number"),
        ("grid: {a: 1}\nargs: []", "TFW0933", 1, "not a plain value"),
        ("grid: [1]\nargs: {in: a.npy}", "TFW0933", 2, "not a list"),
        ("grid: &a [1]\nargs: *a", "TFW0932", 1, "anchors"),
        ("grid: [1]\nargs: !!python/object/apply:os.system ['true']", "TFW0932", 2, "the tag"),
        ("grid: [1]\nargs: [!ours {pointer: 0}]", "TFW0932", 2, "the tag !ours"),
        ("grid: [!!str 1]\nargs: []", "TFW0932", 1, "the tag"),
        (HEAD + "  - 5", "TFW0933", 3, "is not a mapping"),
        (HEAD + "  - {}", "TFW0933", 3, "it has none"),
        (HEAD + "  - {in: a.npy, out: b}", "TFW0933", 3, "in and out"),
        (HEAD + "  - {in: a.npy, fill: 0}", "TFW0932", 3, "has no 'fill'"),
        (HEAD + "  - {in: missing.npy}", "TFW0935", 3, "no such file"),
        (HEAD + "  - {in: broken.npy}", "TFW0935", 3, "cannot be read"),
        (HEAD + "  - {in: objects.npy}", "TFW0935", 3, "cannot be read"),
        (HEAD + "  - {in: two.npz}", "TFW0935", 3, "several arrays"),
        (HEAD + "  - {in: launch.yaml}", "TFW0935", 3, "cannot be read"),
        (HEAD + "  - {in: .}", "TFW0935", 3, "no such file"),
        (HEAD + "  - {out: c, dtype: fp16}", "TFW0933", 3, "has a shape"),
        (HEAD + "  - {out: c, shape: [2]}", "TFW0933", 3, "has a dtype"),
        (HEAD + "  - {out: c, shape: [2], dtype: floot16}", "TFW0934", 3, "did you mean"),
        (HEAD + "  - {out: c, shape: [-1], dtype: fp16}", "TFW0933", 3, "from 0 on"),
        (HEAD + "  - {out: c, shape: [999999999999], dtype: fp16}", "TFW0934", 3, "GiB"),
        (HEAD + "  - {out: c, shape: [2], dtype: i8, fill: nan}", "TFW0934", 3, "cannot fill"),
        (HEAD + "  - {out: c, shape: [2], dtype: i8, fill: 300}", "TFW0934", 3, "cannot fill"),
        (HEAD + "  - {out: c, shape: [2], dtype: i8}\n  - {out: c, shape: [2], dtype: i8}", "TFW0933", 4, "two outputs"),
        (HEAD + "  - {value: x, dtype: i32}", "TFW0933", 3, "is a number"),
        (HEAD + "  - {value: 1.5, dtype: i32}", "TFW0933", 3, "is a int32"),
        (HEAD + "  - {value: 99999999999, dtype: i32}", "TFW0933", 3, "does not fit"),
        (HEAD + "  - {bytes: 0g}", "TFW0933", 3, "hexadecimal"),
        (HEAD + "  - {bytes: abc}", "TFW0933", 3, "pairs"),
        (HEAD + "  - {struct: 3}", "TFW0933", 3, "is not a list"),
        (HEAD + "  - {struct: [{value: 1}]}", "TFW0932", 3, "lacks 'dtype'"),
        (HEAD + "  - struct:\n    - {value: 1.5, dtype: i32}", "TFW0933", 4, "args[0].struct[0] is a int32"),
        (HEAD + "  - {pointer: 4096}", "TFW0933", 3, "null pointer"),
        (HEAD + "  - {in: a.npy, dtype: fp16}", "TFW0934", 3, "32 and 16 bits"),
    ],
)
def test_a_mistake_is_told_with_its_line(write, text, code, line, words):
    with pytest.raises(CodeError) as caught:
        launchfile.read(write(text))
    assert caught.value.code == code and words in str(caught.value)
    assert (caught.value.place.line if caught.value.place else None) == line


def test_a_struct_is_bytes_or_fields_as_c_lays_them_out(write):
    fields = "[{value: 1, dtype: i8}, {value: 0.5, dtype: fp64}, {value: -2, dtype: i16}]"
    text = HEAD + "  - {bytes: 00 ff 7f}\n  - {bytes: 0x0102}\n  - {struct: " + fields + "}"
    first, second, third = launchfile.read(write(text)).args
    assert (first, second) == (Struct(b"\x00\xff\x7f"), Struct(b"\x01\x02"))

    class Fields(ctypes.Structure):
        _fields_ = (("a", ctypes.c_int8), ("b", ctypes.c_double), ("c", ctypes.c_int16))

    assert third == Struct(bytes(Fields(1, 0.5, -2)))


def test_bounded_time_and_memory(write, tmp_path):
    for text in ("[" * 100_000, "a: " * 50_000, "{" * 5000 + "}" * 5000, HEAD + "  - {pointer: 0}\n" * 2000, "#" * (2 << 20)):
        with pytest.raises(CodeError):
            launchfile.read(write(text))
    with pytest.raises(CodeError):
        launchfile.read(str(tmp_path / "missing.yaml"))
