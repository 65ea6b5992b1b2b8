"""A struct by value reaches the kernel as its bytes, whatever gives them; a number does not."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import tilefw
from tilefw.api import LaunchError
from tilefw.cli.main import main

TARGET = "nvidia-sm80"
# out[0], out[1] = s.first, s.third of struct {int first; double second; int third;}
TEXT = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry kernel(.param .u64 .ptr .global out, .param .align 8 .b8 s[24])
.reqntid 1
{
	.reg .b32 %r<3>;
	.reg .b64 %rd<3>;
	ld.param.b64 %rd1, [out];
	cvta.to.global.u64 %rd2, %rd1;
	ld.param.b32 %r1, [s];
	ld.param.b32 %r2, [s+16];
	st.global.v2.b32 [%rd2], {%r1, %r2};
	ret;
}
"""


class S(ctypes.Structure):
    _fields_ = (("first", ctypes.c_int32), ("second", ctypes.c_double), ("third", ctypes.c_int32))


FIELDS = np.dtype([("first", "i4"), ("second", "f8"), ("third", "i4")], align=True)
VALUES = {"ctypes": S(5, 0.5, -7), "bytes": bytes(S(5, 0.5, -7)), "NumPy": np.array((5, 0.5, -7), FIELDS)[()]}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_a_struct_is_given_in_python(value: object) -> None:
    out = np.zeros(2, np.int32)
    kernel = tilefw.load(TEXT.encode(), TARGET)["kernel"]
    assert kernel.entry.parameters[1].kind == "struct"
    kernel.launch(1, [out, value], checks="all")
    assert out.tolist() == [5, -7]


@pytest.mark.parametrize("value", [5, 2.5, None, bytes(23), np.zeros(2)])
def test_what_is_no_struct_of_its_size_is_refused(value: object) -> None:
    with pytest.raises(LaunchError, match="24 bytes"):
        tilefw.load(TEXT.encode(), TARGET)["kernel"].launch(1, [np.zeros(2, np.int32), value])


@pytest.mark.parametrize("struct", [
    "struct: [{value: 5, dtype: i32}, {value: 0.5, dtype: fp64}, {value: -7, dtype: i32}]",
    f"bytes: {bytes(S(5, 0.5, -7)).hex(' ')}",
])
def test_a_struct_is_given_in_a_launch_file(struct: str, tmp_path, capsys) -> None:
    (tmp_path / "k.ptx").write_text(TEXT)
    (tmp_path / "k.yaml").write_text(f"grid: [1]\nargs:\n  - {{out: o, shape: [2], dtype: i32}}\n  - {{{struct}}}\n")
    words = ["simulate", tmp_path / "k.ptx", "--target", TARGET, "--launch", tmp_path / "k.yaml", "--out", tmp_path / "o.npz"]
    assert main([str(word) for word in words]) == 0
    assert np.load(tmp_path / "o.npz")["o"].tolist() == [5, -7]
    capsys.readouterr()
