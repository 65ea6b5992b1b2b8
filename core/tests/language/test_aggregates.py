"""Aggregates: made in kernels and outside, passed on, called, carried through loops and branches, replaced; never changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
from tilefw.api.errors import CompileError


@tilefw.aggregate
class Pair:
    first: tl.tensor
    second: tl.tensor

    @tilefw.jit
    def swapped(self):
        return Pair(self.second, self.first)

    @tilefw.jit
    def unpacked(self):
        return self.first, self.get_second()

    def get_second(self, _semantic: Any = None) -> Any:
        return self.second

    def __getitem__(self, index: Any, _semantic: Any = None) -> Any:
        return (self.first, self.second)[index.value]

    @tilefw.jit
    def __add__(self, other):
        return Pair(self.first + other.first, self.second + other.second)

    @tilefw.jit
    def __rmul__(self, factor):
        return Pair(factor * self.first, factor * self.second)


@tilefw.aggregate
class Scaled(Pair):
    scale: tl.constexpr = tl.constexpr(3)

    @tilefw.constexpr_function
    def doubled(self):
        return 2 * self.scale

    @tilefw.jit
    def total(self):
        return self.scale * (self.first + self.second)


@tilefw.aggregate
class Rows:
    data: tl.tensor
    size: tl.constexpr

    def __init__(self, size: Any, _semantic: Any = None) -> None:
        self.data = tl.arange(0, size, _semantic=_semantic)  # type: ignore[call-arg]
        self.size = tl.constexpr(size)

    @staticmethod
    def of_four(start: Any) -> Any:
        return Quad((start, 4))


@tilefw.aggregate
class Quad:
    both: tl.tuple

    @staticmethod
    @tilefw.jit
    def at(x):
        return Quad((x, 8))


@tilefw.jit
def with_methods(out_ptr):
    at = tl.arange(0, 4)
    pair = Pair(at, at + 10)
    first, second = pair.swapped().unpacked()
    tl.store(out_ptr + at, first)
    tl.store(out_ptr + 4 + at, second + pair[1])


@tilefw.jit
def with_operators(out_ptr):
    at = tl.arange(0, 4)
    pair = 2 * (Pair(at, at + 1) + Pair(at, at))
    tl.store(out_ptr + at, pair.first)
    tl.store(out_ptr + 4 + at, pair.second)


@tilefw.jit
def with_inheritance(out_ptr):
    at = tl.arange(0, 4)
    scaled = Scaled(at, at)
    tl.static_assert(scaled.doubled() == 6 and isinstance(scaled, Pair))
    tl.store(out_ptr + at, scaled.total())
    tl.store(out_ptr + 4 + at, tl.aggregate_replace(scaled, second=at + 1, scale=5).total())


@tilefw.jit
def with_constructors(out_ptr):
    rows = Rows(4)
    tl.static_assert(rows.size == 4)
    tl.store(out_ptr + rows.data, Rows.of_four(rows.data).both[0] * Rows.of_four(rows.data).both[1])
    tl.store(out_ptr + 4 + rows.data, Quad.at(rows.data).both[0] + Quad.at(rows.data).both[1])


@tilefw.jit
def with_control_flow(out_ptr, n):
    at = tl.arange(0, 4)
    pair = Scaled(at, at * 0, 2)
    for i in range(n):
        pair = Scaled(pair.first + i, pair.second + pair.first, 2)
    if n > 2:
        pair = tl.aggregate_replace(pair, first=pair.first * 100)
    tl.store(out_ptr + at, pair.first)
    tl.store(out_ptr + 4 + at, pair.second)


A = np.arange(4)
KERNELS = [
    (with_methods, (), [A + 10, A + A + 10]),
    (with_operators, (), [4 * A, 4 * A + 2]),
    (with_inheritance, (), [6 * A, 5 * (2 * A + 1)]),
    (with_constructors, (), [4 * A, A + 8]),
    (with_control_flow, (3,), [100 * (A + 3), 3 * A + 1]),
    (with_control_flow, (2,), [A + 1, 2 * A]),
]


@pytest.mark.parametrize(("kernel", "args", "expected"), KERNELS, ids=lambda value: getattr(value, "__name__", ""))
def test_kernels_use_aggregates(kernel: Any, args: tuple[int, ...], expected: list[np.ndarray]) -> None:
    found = np.full(8, -1, np.int32)
    kernel[(1,)](found, *args)
    np.testing.assert_array_equal(found, np.concatenate(expected))


def test_values_are_made_outside_of_kernels() -> None:
    @tilefw.aggregate
    class State:
        x: tl.constexpr
        y: tl.constexpr = 7  # type: ignore[assignment]
        shape: tl.tuple = (1, 2)

    class Shape(NamedTuple):
        rows: Any
        columns: Any

    state = State(3, shape=Shape(4, tl.constexpr(5)))
    assert (state.x.value, state.y.value, state.shape.rows.value, state.shape.columns.value) == (3, 7, 4, 5)  # type: ignore[attr-defined]
    changed = tl.aggregate_replace(state, x=30)
    assert (changed.x.value, changed.y.value, state.x.value) == (30, 7, 3)  # type: ignore[attr-defined]


def test_fields_are_inherited_oldest_first() -> None:
    @tilefw.aggregate
    class Base:
        x: tl.constexpr
        y: tl.constexpr = tl.constexpr(2)

        @tilefw.constexpr_function
        def get_x(self):
            return self.x

    @tilefw.aggregate
    class Child(Base):
        z: tl.constexpr  # type: ignore[misc]

        def __init__(self, x: int) -> None:
            self.x, self.y, self.z = tl.constexpr(x), tl.constexpr(0), tl.constexpr(x + 1)

    assert list(Child.__aggregate_fields__) == ["x", "y", "z"]  # type: ignore[attr-defined]
    assert Child(4).get_x().value == 4 and Child(4).z.value == 5


def unfinished() -> Any:
    @tilefw.aggregate
    class Unfinished:
        x: tl.constexpr

        def __init__(self) -> None:
            pass

    return Unfinished()


def unaggregated() -> Any:
    @tilefw.aggregate
    class Child(NamedTuple("Plain", [("x", int)])):
        y: tl.constexpr

    return Child


def changed() -> None:
    state = Scaled(tl.tensor(), tl.tensor())
    state.first = tl.tensor()


@pytest.mark.parametrize(("do", "error", "message"), [
    (changed, AttributeError, "cannot assign to field 'first' on immutable aggregate Scaled"),
    (unfinished, AttributeError, "did not initialize attribute 'x'"),
    (unaggregated, TypeError, "Aggregates can only inherit from other aggregates"),
    (lambda: Pair(1, 2), TypeError, "for attribute 'first'"),  # type: ignore[arg-type]
    (lambda: Pair(tl.tensor()), TypeError, "missing required argument: 'second'"),  # type: ignore[call-arg]
    (lambda: Quad((), both=()), TypeError, "multiple values for argument 'both'"),  # type: ignore[misc]
    (lambda: Quad((), 3), TypeError, "takes 2 positional arguments but 3 were given"),  # type: ignore[call-arg]
    (lambda: Quad((), z=3), TypeError, "unexpected keyword argument 'z'"),  # type: ignore[call-arg]
    (lambda: tl.aggregate_replace(42, x=1), TypeError, "expects an aggregate instance"),
    (lambda: tl.aggregate_replace(Quad(()), z=99), TypeError, "has no field 'z'"),  # type: ignore[call-arg]
])
def test_mistakes_outside_of_kernels_raise_as_tritons(do: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        do()


@tilefw.jit
def mistaken(out_ptr, MISTAKE: tl.constexpr):
    at = tl.arange(0, 4)
    pair = Pair(at, at)
    if MISTAKE == "set":
        pair.first = at
    elif MISTAKE == "number":
        Pair(at, 11)  # type: ignore[arg-type]
    elif MISTAKE == "name":
        tl.store(out_ptr + at, pair.frist)  # type: ignore[attr-defined]
    elif MISTAKE == "operator":
        tl.store(out_ptr + at, pair - pair)  # type: ignore[operator]
    else:
        tl.aggregate_replace(pair, third=at)


@pytest.mark.parametrize(("mistake", "message"), [
    ("set", "assignment to an attribute"), ("number", "for attribute 'second'"), ("name", "did you mean `first`"),
    ("operator", "`-` does not take Pair"), ("field", "Pair has no field 'third'"),
])
def test_mistakes_in_kernels_have_a_place(mistake: str, message: str) -> None:
    with pytest.raises(CompileError) as caught:
        mistaken[(1,)](np.zeros(4, np.int32), MISTAKE=mistake)
    assert message in str(caught.value) and caught.value.place is not None


def test_a_constructor_is_no_jit_function() -> None:
    with pytest.raises(CompileError, match="the constructor of aggregate `Made` is a jit function"):
        @tilefw.aggregate
        class Made:
            x: tl.tensor

            @tilefw.jit
            def __init__(self, x):
                self.x = x


def test_a_changed_method_is_another_kernel() -> None:
    def kernel_of(factor: int) -> Any:
        @tilefw.aggregate
        class Box:
            x: tl.tensor

            def scaled(self, _semantic: Any = None) -> Any:
                return factor

        @tilefw.jit
        def kernel(out_ptr):
            tl.store(out_ptr, Box(tl.program_id(0)).scaled())

        return kernel

    one, two, again = kernel_of(1), kernel_of(2), kernel_of(1)
    assert one.cache_key == again.cache_key != two.cache_key
