"""Names of Triton's host side that have little to do here: bases, wrappers, and what asks for memory of a device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from tilefw.runtime.arguments.arrays import TypedArray
from tilefw.runtime.arguments.arrays import reinterpret as typed

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


def reinterpret(tensor: Any, dtype: Any) -> TypedArray:
    """The same memory read as `dtype`, a type of the language or its name; raises LaunchError TFW0331."""
    return typed(tensor, getattr(dtype, "name", dtype))


def set_allocator(allocator: Any) -> None:
    """Taken for Triton's sake: descriptors need no memory of a device here, so that the allocator is never called."""


def must_use_result(message: Any = "", if_reached: bool = True) -> Any:
    """Mark a function whose result must be used; here it is the function itself."""
    return message if callable(message) else lambda function: function
