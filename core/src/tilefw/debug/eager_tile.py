"""What a kernel's names stand for under the debugger: scalars, tiles and pointers that have their elements."""

from __future__ import annotations

from types import FunctionType
from typing import Any, Protocol

import numpy as np
from xdsl.ir import SSAValue

import tilefw.language as tl
from tilefw.api.dtypes import DTYPES
from tilefw.frontend.values import RuntimeValue
from tilefw.tile import numbers
from tilefw.tile.reference.value import Array, EvaluatedValue

_NATIVE = {"fp16": np.float16, "fp32": np.float32}


class StandingProgram(Protocol):
    """What a tile asks of its program."""

    def spelled(self, value: RuntimeValue, hex: bool = False) -> str:
        """The elements of a value as text."""
        ...

    def decided(self, value: RuntimeValue) -> bool:
        """A value of one element as a condition."""
        ...

    def operated(self, symbol: str, left: Any, right: Any) -> Any:
        """One operator on values."""
        ...

    def attribute_of(self, tile: Any, name: str) -> Any:
        """`tile.name`, methods ready to be called."""
        ...


class HeldValue:
    """The elements of one SSA value, for as long as some tile has them."""

    __slots__ = ("__weakref__", "value")

    def __init__(self, value: EvaluatedValue) -> None:
        self.value = value


class EagerTile(RuntimeValue):
    """A value of the program that stands still: `print(x)` shows its elements, `x.numpy()` is a copy of them.

    Its operators and the functions of `tl` may be tried at a debugger's prompt. `x[i]` gives elements there; in a kernel an index
    makes new axes only.
    """

    __slots__ = ("_held", "_program")

    def __init__(self, ssa: SSAValue, type: tl.dtype, held: HeldValue, program: StandingProgram) -> None:
        super().__init__(ssa, type)
        self._held = held
        self._program = program

    def numpy(self) -> Array:
        """The elements: of a type that NumPy has, else as float64 or the next wider integer; pointers as addresses."""
        found = np.array(np.broadcast_to(self._held.value.x, (1, *self.shape))[0])
        if self.dtype.is_ptr():
            return found
        dtype = DTYPES[self.dtype.name]
        if dtype.kind == "uint":
            return numbers.as_unsigned(found, dtype.bits).reshape(self.shape)
        return found.astype(_NATIVE[dtype.name]) if dtype.name in _NATIVE else found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self.numpy() if dtype is None else self.numpy().astype(dtype)

    def __repr__(self) -> str:
        if not self.shape:
            return f"{self._program.spelled(self)} ({self.dtype})"
        return f"{self._program.spelled(self)} ({self.dtype}{list(self.shape)})"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(self.numpy()[()], spec) if spec and not self.shape else str(self)

    def __bool__(self) -> bool:
        return self._program.decided(self)

    def __int__(self) -> int:
        return int(self.numpy()[()])

    def __float__(self) -> float:
        return float(self.numpy()[()])

    def __getitem__(self, index: Any) -> Any:
        return self.numpy()[index]

    def __neg__(self) -> Any:
        return self._program.operated("-", 0, self)

    def __invert__(self) -> Any:
        return self._program.operated("^", self, True if self.dtype.is_bool() else -1)


def _operator(symbol: str, swapped: bool) -> Any:
    def operate(self: EagerTile, other: Any) -> Any:
        return self._program.operated(symbol, other, self) if swapped else self._program.operated(symbol, self, other)

    return operate


def _method(name: str) -> Any:
    return lambda self, *args, **keywords: self._program.attribute_of(self, name)(*args, **keywords)


for _name, _kept in list(vars(tl.tensor).items()):
    if isinstance(_kept, FunctionType) and not _name.startswith("_") and _name != "advance":
        setattr(EagerTile, _name, _method(_name))
setattr(EagerTile, "T", property(lambda self: self._program.attribute_of(self, "T")))  # noqa: B010  (an annotation of its base)
for _name, _symbol in (
    ("add", "+"), ("sub", "-"), ("mul", "*"), ("truediv", "/"), ("floordiv", "//"), ("mod", "%"), ("and", "&"), ("or", "|"),
    ("xor", "^"), ("lshift", "<<"), ("rshift", ">>"),
):
    setattr(EagerTile, f"__{_name}__", _operator(_symbol, False))
    setattr(EagerTile, f"__r{_name}__", _operator(_symbol, True))
for _name, _symbol in (("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">=")):
    setattr(EagerTile, f"__{_name}__", _operator(_symbol, False))
