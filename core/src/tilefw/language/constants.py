"""`tl.constexpr`: a value known when the kernel is compiled, as annotation and as the wrapper of module-level constants."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # To a type checker a constexpr is whatever its value is: `tl.arange(0, BLOCK)` takes one for an int.
    _Value = Any
else:
    _Value = object


class constexpr(_Value):  # noqa: N801  (Triton's spelling)
    """Marks what is known at compile time.

    As an annotation (`BLOCK: tl.constexpr`) it makes a parameter part of the compiled kernel; `x: tl.constexpr = expression`
    in a kernel keeps a local at compile time, where a plain assignment of a number makes a run-time scalar. As a wrapper,
    `N = tl.constexpr(42)` is how a kernel may read a global. Operators on it give a constexpr again.
    """

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = unwrap(value)

    def __repr__(self) -> str:
        return f"constexpr[{self.value!r}]"

    def __hash__(self) -> int:
        return hash(self.value)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __index__(self) -> int:
        return operator.index(self.value)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self.value(*args, **keywords)

    def __iter__(self) -> Any:
        return iter(self.value)

    def __getitem__(self, index: Any) -> Any:
        return self.value[unwrap(index)]

    def __eq__(self, other: object) -> Any:
        return constexpr(self.value == unwrap(other))

    def __ne__(self, other: object) -> Any:
        return constexpr(self.value != unwrap(other))

    def __lt__(self, other: Any) -> constexpr:
        return constexpr(self.value < unwrap(other))

    def __le__(self, other: Any) -> constexpr:
        return constexpr(self.value <= unwrap(other))

    def __gt__(self, other: Any) -> constexpr:
        return constexpr(self.value > unwrap(other))

    def __ge__(self, other: Any) -> constexpr:
        return constexpr(self.value >= unwrap(other))

    def __add__(self, other: Any) -> constexpr:
        return constexpr(self.value + unwrap(other))

    def __radd__(self, other: Any) -> constexpr:
        return constexpr(unwrap(other) + self.value)

    def __sub__(self, other: Any) -> constexpr:
        return constexpr(self.value - unwrap(other))

    def __rsub__(self, other: Any) -> constexpr:
        return constexpr(unwrap(other) - self.value)

    def __mul__(self, other: Any) -> constexpr:
        return constexpr(self.value * unwrap(other))

    def __rmul__(self, other: Any) -> constexpr:
        return constexpr(unwrap(other) * self.value)

    def __truediv__(self, other: Any) -> constexpr:
        return constexpr(self.value / unwrap(other))

    def __rtruediv__(self, other: Any) -> constexpr:
        return constexpr(unwrap(other) / self.value)

    def __floordiv__(self, other: Any) -> constexpr:
        return constexpr(self.value // unwrap(other))

    def __rfloordiv__(self, other: Any) -> constexpr:
        return constexpr(unwrap(other) // self.value)

    def __mod__(self, other: Any) -> constexpr:
        return constexpr(self.value % unwrap(other))

    def __rmod__(self, other: Any) -> constexpr:
        return constexpr(unwrap(other) % self.value)

    def __pow__(self, other: Any) -> constexpr:
        return constexpr(self.value ** unwrap(other))

    def __rpow__(self, other: Any) -> constexpr:
        return constexpr(unwrap(other) ** self.value)

    def __and__(self, other: Any) -> constexpr:
        return constexpr(self.value & unwrap(other))

    def __rand__(self, other: Any) -> constexpr:
        return constexpr(unwrap(other) & self.value)

    def __or__(self, other: Any) -> constexpr:
        return constexpr(self.value | unwrap(other))

    def __ror__(self, other: Any) -> constexpr:
        return constexpr(unwrap(other) | self.value)

    def __xor__(self, other: Any) -> constexpr:
        return constexpr(self.value ^ unwrap(other))

    def __rxor__(self, other: Any) -> constexpr:
        return constexpr(unwrap(other) ^ self.value)

    def __lshift__(self, other: Any) -> constexpr:
        return constexpr(self.value << unwrap(other))

    def __rlshift__(self, other: Any) -> constexpr:
        return constexpr(unwrap(other) << self.value)

    def __rshift__(self, other: Any) -> constexpr:
        return constexpr(self.value >> unwrap(other))

    def __rrshift__(self, other: Any) -> constexpr:
        return constexpr(unwrap(other) >> self.value)

    def __neg__(self) -> constexpr:
        return constexpr(-self.value)

    def __pos__(self) -> constexpr:
        return constexpr(+self.value)

    def __invert__(self) -> constexpr:
        return constexpr(~self.value)


class constexpr_type:  # noqa: N801
    """The type of a constexpr, which is its value; for `isinstance` tests in code written for Triton."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = unwrap(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, constexpr_type) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return f"constexpr_type[{self.value!r}]"


def unwrap(value: Any) -> Any:
    """The plain Python value inside a constexpr; anything else as it is."""
    while isinstance(value, constexpr):
        value = value.value
    return value
