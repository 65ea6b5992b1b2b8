"""What a case of the corpus is: a kernel, how to compile it, launch data by seed, and what must come out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from oracles.bounded import Bounded
from oracles.chips import Chip


@dataclass(frozen=True, slots=True)
class Input:
    """A buffer that the kernel reads. Elements where `written` is False are left uninitialised."""

    array: np.ndarray
    written: np.ndarray | None = None


@dataclass(frozen=True, slots=True)
class Output:
    """A buffer that the kernel fills; it starts uninitialised."""

    shape: tuple[int, ...]
    dtype: object


@dataclass(frozen=True, slots=True)
class InOut:
    """A buffer that is read and written."""

    array: np.ndarray


@dataclass(frozen=True, slots=True)
class Number:
    """A scalar argument; `dtype` is Triton's spelling."""

    value: int | float
    dtype: str


@dataclass(frozen=True, slots=True)
class Described:
    """A buffer that the kernel reaches by a descriptor which the host has made."""

    buffer: Input | Output | InOut


Argument = Input | Output | InOut | Number | Described


@dataclass(frozen=True)
class Problem:
    """Arguments by parameter name in the kernel's order, and the expected contents of buffers by the same names.

    A plain array is expected bit for bit; a Bounded within its error. `covered` says which elements of an output are
    written at all (all of them when absent).
    """

    arguments: Mapping[str, Argument]
    expected: Mapping[str, Bounded | np.ndarray]
    covered: Mapping[str, np.ndarray] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Variant:
    """Another launch of a case's code: other sizes, same specialisation."""

    grid: tuple[int, ...]
    problem: Callable[[np.random.Generator], Problem]


@dataclass(frozen=True)
class Case:
    """One kernel compiled one way.

    `signature` gives the runtime parameters' types as Triton spells them (`*fp16:16`, `i32`); the other parameters
    are in `constexprs`. `problem` makes launch data from a random generator. `fast` cases run in every test run.
    `variants` are further launches of the same code, at sizes where other instructions touch the edges of buffers. `chips` are
    those that have what the kernel needs (None: all). `num_ctas` workgroups make a program. `found` are the
    codes of what Triton's code of it does wrong.
    """

    name: str
    kernel: str
    signature: Mapping[str, str]
    constexprs: Mapping[str, object]
    grid: tuple[int, ...]
    problem: Callable[[np.random.Generator], Problem]
    num_warps: int = 4
    num_stages: int = 3
    num_ctas: int = 1
    fast: bool = True
    variants: tuple[Variant, ...] = ()
    chips: tuple[Chip, ...] | None = None
    found: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Mismatch:
    """An output that is not what it must be: how many elements are off, and the worst of them."""

    output: str
    wrong: int
    total: int
    index: tuple[int, ...]
    actual: object
    expected: object
    bound: float

    def __str__(self) -> str:
        return (
            f"{self.output}{list(self.index)} = {self.actual}, expected {self.expected} within {self.bound:.3g} "
            f"({self.wrong} of {self.total} elements are off)"
        )


def mismatches(problem: Problem, outputs: Mapping[str, np.ndarray]) -> list[Mismatch]:
    """Where `outputs` (buffers by parameter name) differ from what the problem expects."""
    found = [_compare(name, expected, outputs[name], problem.covered.get(name)) for name, expected in problem.expected.items()]
    return [m for m in found if m is not None]


def _compare(name: str, expected: Bounded | np.ndarray, actual: np.ndarray, covered: np.ndarray | None) -> Mismatch | None:
    if isinstance(expected, Bounded):
        value, bound = expected.value, expected.error
        got = actual.astype(np.float64)
        with np.errstate(invalid="ignore"):
            off = ~(np.abs(got - value) <= bound) & ~(np.isnan(got) & np.isnan(value)) & ~(got == value)
            excess = np.where(off, np.nan_to_num(np.abs(got - value) / np.maximum(bound, 1e-300), nan=np.inf), 0.0)
    else:
        value, bound = expected, np.zeros(expected.shape)
        off = _raw(actual) != _raw(expected.astype(actual.dtype))
        excess = off.astype(np.float64)
    if covered is not None:
        off, excess = off & covered, np.where(covered, excess, 0.0)
    if not off.any():
        return None
    worst = tuple(int(i) for i in np.unravel_index(int(np.argmax(excess)), off.shape))
    return Mismatch(
        name, int(off.sum()), off.size, worst, actual[worst], value[worst], float(np.broadcast_to(bound, off.shape)[worst])
    )


def _raw(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")
