"""Names of Triton's host side that have little to do here: bases, wrappers, and what asks for memory of a device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from tilefw.api.dtypes import DTYPES
from tilefw.runtime.arguments.arrays import TypedArray, array_argument
from tilefw.runtime.arguments.arrays import reinterpret as typed
from tilefw.runtime.arguments.kernel_parameter import signature_name

F = TypeVar("F", bound=Callable[..., Any])


class KernelInterface:
    """What has `kernel[grid](…)`: base of classes that wrap a kernel and define `run(*args, grid, warmup, **keywords)`."""

    run: Callable[..., Any]

    def warmup(self, *args: Any, grid: Any, **keywords: Any) -> Any:
        return self.run(*args, grid=grid, warmup=True, **keywords)

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        return lambda *args, **keywords: self.run(*args, grid=grid, warmup=False, **keywords)


class MockTensor:
    """An array of no memory for `warmup`: it has an element type and a shape, and its address is divisible by 16."""

    def __init__(self, dtype: Any, shape: Any = None) -> None:
        self.dtype = dtype
        self.shape = [1] if shape is None else list(shape)

    @staticmethod
    def wrap_dtype(arg: Any) -> Any:
        """`arg` itself, or a MockTensor where it is an element type."""
        from tilefw.language.dtypes import dtype

        is_type = isinstance(arg, dtype) or f"{type(arg).__module__}.{type(arg).__qualname__}" == "torch.dtype"
        return MockTensor(arg) if is_type else arg

    @staticmethod
    def data_ptr() -> int:
        return 0


class TensorWrapper:
    """A tensor of another library, `base`, whose memory is read as the element type `dtype` of the language."""

    def __init__(self, base: Any, dtype: Any) -> None:
        self._typed: TypedArray = typed(base, getattr(dtype, "name", None) or str(dtype).removeprefix("torch."))
        self.data = getattr(base, "data", None)  # programs put another view there; what kernels read stays `base`

    @property
    def __typed_array__(self) -> TypedArray:
        """What a launch takes."""
        return self._typed

    @property
    def base(self) -> Any:
        return self._typed.array

    @property
    def dtype(self) -> Any:
        from tilefw.language.dtypes import dtype

        return dtype(self._typed.element.name)

    @property
    def device(self) -> Any:
        return self.base.device

    @property
    def shape(self) -> Any:
        return self.base.shape

    def data_ptr(self) -> int:
        return self.base.data_ptr()

    def stride(self, *axes: int) -> Any:
        return self.base.stride(*axes)

    def element_size(self) -> int:
        return self.base.element_size()

    def cpu(self) -> TensorWrapper:
        return TensorWrapper(self.base.cpu(), self.dtype)

    def to(self, device: Any) -> TensorWrapper:
        return TensorWrapper(self.base.to(device), self.dtype)

    def clone(self) -> TensorWrapper:
        return TensorWrapper(self.base.clone(), self.dtype)

    def new_empty(self, sizes: Any) -> TensorWrapper:
        return TensorWrapper(self.base.new_empty(sizes), self.dtype)

    def copy_(self, other: TensorWrapper) -> None:
        self.base.copy_(other.base)


def reinterpret(tensor: Any, dtype: Any) -> Any:
    """The same memory read as `dtype`, a type of the language or its name; raises LaunchError TFW0331.

    A wrapper that gets the type of its memory back gives the tensor itself."""
    if not isinstance(tensor, TensorWrapper):
        return TensorWrapper(tensor, dtype)
    wrapped = TensorWrapper(tensor.base, dtype)
    return tensor.base if wrapped.__typed_array__.element == array_argument(tensor.base).dtype else wrapped


def _type_names() -> dict[str, str]:
    """The words for an element type that programs use, and how signatures write it."""
    signed = {d.name: "u1" if d.name == "int1" else signature_name(d.name) for d in DTYPES.values()}
    short = {name: name for name in (*signed.values(), "void")}
    long = {d.name.replace("fp", "float"): signed[d.name] for d in DTYPES.values() if d.is_float}
    arrays = {d.numpy: signed[d.name] for d in DTYPES.values() if d.numpy}
    other = {"half": "fp16", "float": "fp32", "double": "fp64", "int": "i32", "i1": "u1", "uint1": "u1"}
    return {**signed, **short, **long, **arrays, **other}


type_canonicalisation_dict = _type_names()


def set_allocator(allocator: Any) -> None:
    """Taken for Triton's sake: descriptors need no memory of a device here, so that the allocator is never called."""


class NullAllocator:
    """What programs set as allocator to have none again; nothing calls it here."""


def must_use_result(message: Any = "", if_reached: bool = True) -> Any:
    """Mark a function whose result must be used; here it is the function itself."""
    return message if callable(message) else lambda function: function


def triton_key() -> str:
    """One word for the compiler, which changes with every change of it: what others file its results under."""
    from tilefw.runtime.compilation.fingerprint import fingerprint
    from tilefw.runtime.config import resolve
    from tilefw.runtime.plugins.loader import find_target

    return fingerprint(find_target(resolve().target).plugin)
