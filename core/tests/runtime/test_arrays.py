"""Arrays of any library become memory with the bounds of the storage that owns them."""

from __future__ import annotations

import array

import ml_dtypes
import numpy as np
import pytest

from tilefw.api import LaunchError
from tilefw.runtime.arguments.arrays import array_argument, host_array, is_array, reinterpret, storages


def test_a_view_has_the_bounds_of_its_owner():
    whole = np.arange(24, dtype=np.float32).reshape(4, 6)
    for view in (whole[1:], whole[:, 2:5], whole[::-1], whole.T, whole[2, 3:4], whole.reshape(-1)[5:], whole[1:][1:]):
        host = host_array(view)
        assert (host.start, host.nbytes) == (whole.ctypes.data, 96)
        assert host.address == view.ctypes.data and host.strides == view.strides and host.shape == view.shape


def test_an_array_over_a_buffer_has_the_bounds_of_the_buffer():
    raw = bytearray(64)
    host = host_array(np.frombuffer(raw, np.int16, count=4, offset=8))
    assert host.nbytes == 64 and host.offset == 8 and not host.readonly


def test_an_array_whose_mask_a_kernel_would_not_see_is_refused():
    masked = np.ma.masked_array(np.arange(4.0), mask=[0, 1, 0, 0])
    with pytest.raises(LaunchError, match="masked array") as caught:
        array_argument(masked)
    assert caught.value.code == "TFW0330" and array_argument(masked.filled(0)).nbytes == 32


NARROW = [
    "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float6_e3m2fn", "float4_e2m1fn", "int4",
]


@pytest.mark.parametrize("name", NARROW)
def test_ml_dtypes(name):
    host = host_array(np.zeros(3, getattr(ml_dtypes, name)))
    assert host.dtype.numpy == name and host.nbytes == 3 * host.dtype.storage_bits // 8


def test_the_buffer_protocol():
    assert host_array(array.array("d", [1, 2])).dtype.name == "fp64"
    assert host_array(b"abc").readonly and not host_array(bytearray(b"abc")).readonly
    assert host_array(memoryview(bytearray(8)).cast("i")).dtype.name == "int32"


class Interface:
    def __init__(self, owner):
        self.owner, self.__array_interface__ = owner, owner.__array_interface__


class Dlpack:
    def __init__(self, owner):
        self.owner = owner

    def __dlpack__(self, **keywords):
        return self.owner.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self.owner.__dlpack_device__()


class OnDevice:
    __cuda_array_interface__ = {"shape": (1,), "typestr": "<f4", "data": (4096, False), "version": 3}


@pytest.mark.parametrize("wrap", [Interface, Dlpack])
def test_protocols_share_memory(wrap):
    owner = np.arange(5, dtype=np.float32)
    host = host_array(wrap(owner))
    assert host.address == owner.ctypes.data and host.dtype.name == "fp32" and host.shape == (5,)


def test_an_array_in_the_memory_of_a_device_is_refused_by_name():
    assert is_array(OnDevice())
    with pytest.raises(LaunchError) as caught:
        host_array(OnDevice())
    assert caught.value.code == "TFW0333"


@pytest.mark.parametrize(("interface", "strides"), [({}, (12, 4)), ({"strides": (4, 20)}, (4, 20))])
def test_an_array_on_a_device_has_its_shape_and_strides(interface, strides):
    class Matrix:
        __cuda_array_interface__ = {"shape": (2, 3), "typestr": "<f4", "data": (4096, False), "version": 3, **interface}

    found = array_argument(Matrix())
    assert (found.shape, found.strides) == ((2, 3), strides)


def test_torch_tensors():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    whole = torch.arange(12, dtype=torch.bfloat16).reshape(3, 4)
    host = host_array(whole[1:, ::2])
    assert host.dtype.name == "bf16" and host.offset == 8 and host.nbytes == 24 and host.strides == (8, 4)
    with pytest.raises(LaunchError):
        host_array(torch.zeros(2, dtype=torch.complex64))


def test_a_negated_view_is_no_memory_in_a_subclass_of_tensors_either():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    derived = type("Derived", (torch.Tensor,), {})
    negated = torch.ones(4, dtype=torch.complex64).conj().imag.as_subclass(derived)
    with pytest.raises(LaunchError) as caught:
        host_array(negated)
    assert caught.value.code == "TFW0330" and "resolve_neg" in str(caught.value)
    plain = host_array(negated.resolve_neg())
    assert plain.dtype.name == "fp32" and plain.nbytes == 16


def test_a_tensor_that_wraps_another_has_no_memory_of_its_own():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    kind = type("Wrapper", (torch.Tensor,), {"__torch_dispatch__": classmethod(lambda *_: None)})
    wrapper = torch.Tensor._make_wrapper_subclass(kind, (4,), dtype=torch.float32)
    with pytest.raises(LaunchError) as caught:
        host_array(wrapper)
    assert caught.value.code == "TFW0330"


@pytest.mark.parametrize(
    "value, code",
    [(3, "TFW0330"), ("text", "TFW0330"), ([1.0], "TFW0330"), (object(), "TFW0330"), (np.zeros(2, complex), "TFW0332"),
     (np.zeros(2, ">f4"), "TFW0332"), (np.array(["a"]), "TFW0332"), (np.zeros(2, "M8[s]"), "TFW0332"), (np.array([{}]), "TFW0332")],
)
def test_what_is_no_array_is_refused(value, code):
    with pytest.raises(LaunchError) as caught:
        host_array(value)
    assert caught.value.code == code


class Wrapped:
    """An object as programs wrap tensors in: a pointer into `base`, and nothing else is told."""

    def __init__(self, base, offset=0, dtype="fp32"):
        self.base, self.offset, self.dtype = base, offset, dtype

    def data_ptr(self):
        return self.base.ctypes.data + self.offset


def test_an_object_with_an_address_has_the_bounds_of_the_array_that_it_holds():
    whole = np.arange(8, dtype=np.float32)
    host = host_array(Wrapped(whole, 28))
    assert (host.start, host.nbytes, host.offset, host.dtype.name) == (whole.ctypes.data, 32, 28, "fp32")
    assert host_array(Wrapped(whole, 4, "int32")).dtype.name == "int32"
    for outside in (-4, 36):
        with pytest.raises(LaunchError, match="no array of its own has memory there"):
            array_argument(Wrapped(whole, outside))
    with pytest.raises(LaunchError, match="no element type 'moo'"):
        array_argument(Wrapped(whole, 0, "moo"))


class Half:
    """Four of the elements, and an array interface that tells of no more."""

    def __init__(self, whole, first):
        self.part = whole[first : first + 4]

    @property
    def __array_interface__(self):
        return self.part.__array_interface__


def test_an_address_between_two_arrays_is_where_the_second_begins():
    whole = np.arange(8, dtype=np.float32)
    wrapped = Wrapped(whole, 16)
    wrapped.data_ptr = lambda: whole.ctypes.data + 16
    wrapped.base, wrapped.low, wrapped.high = np.zeros(2, complex), Half(whole, 0), Half(whole, 4)
    host = host_array(wrapped)
    assert (host.start, host.nbytes, host.offset) == (whole.ctypes.data + 16, 16, 0)


def test_pointers_that_hold_each_other_are_looked_at_once():
    whole = np.arange(8, dtype=np.float32)
    inner = Wrapped(whole, 4)
    outer = Wrapped(whole, 8)
    outer.base, outer.data_ptr, inner.outer = inner, inner.data_ptr, outer
    assert host_array(outer).offset == 4
    inner.base, inner.data_ptr = None, lambda: 64
    with pytest.raises(LaunchError, match="no array of its own has memory there"):
        host_array(inner)


def test_numbers_and_none_are_no_arrays():
    assert not any(is_array(value) for value in (1, 1.5, True, None, "x", np.float32(1), np.int64(2)))


def test_reinterpretation_needs_equal_widths():
    codes = np.zeros(4, np.uint8)
    assert host_array(reinterpret(codes, "fp8e4b15")).dtype.name == "fp8e4b15"
    with pytest.raises(LaunchError, match="8 and 16 bits"):
        reinterpret(codes, "fp16")
    with pytest.raises(LaunchError, match="no element type"):
        reinterpret(codes, "fp7")


def test_storages_merge_only_what_overlaps():
    whole, other, empty = np.zeros(8, np.float32), np.zeros(8, np.int32), np.zeros(0, np.float32)
    other.flags.writeable = False
    named = {"a": whole[:3], "b": whole[5:], "c": other, "d": empty, "e": other[1:]}
    found = storages([(name, host_array(value)) for name, value in named.items()])
    by_label = {s.label: s for s in found}
    assert set(by_label) == {"a/b", "c/e", "d"}
    assert by_label["a/b"].nbytes == 32 and by_label["c/e"].readonly and by_label["d"].nbytes == 0


def test_an_empty_array_and_a_scalar_array_have_memory():
    assert host_array(np.zeros((0, 3))).nbytes == 0
    assert host_array(np.array(3.0)).nbytes == 8
