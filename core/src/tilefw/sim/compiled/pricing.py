"""When a function of this package is compiled: once its NumPy form has cost this process what compiling costs, about."""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tilefw.api.errors import UsageError
from tilefw.sim.compiled.kept_code import kept_object, object_for
from tilefw.sim.compiled.native import NativeFunction, available
from tilefw.sim.floats import Array

LOAD_SECONDS = 0.1
"""What LLVM itself costs where the process does not have it yet (llvmlite 0.50: 0.07 to 0.12 s)."""
LOOPS_SECONDS, KEPT_SECONDS = 0.2, 0.02
"""What a function with loops costs: to optimise (0.1 to 0.2 s), and where its code is kept on disk."""
_MODES = ("0", "1", "always")


def mode() -> str:
    """TILEFW_JIT: "0" never compiles, "1" where it pays, "always" at once. Raises UsageError for another word."""
    word = os.environ.get("TILEFW_JIT", "").strip().lower() or "1"
    if word not in _MODES:
        raise UsageError(f"TILEFW_JIT is one of {', '.join(_MODES)}, not {word!r}", code="TFW0902")
    return word


def load_seconds() -> float:
    """What LLVM costs to load, 0 where it is there."""
    return 0.0 if "llvmlite.binding" in sys.modules else LOAD_SECONDS


@dataclass(slots=True)
class Spent:
    """Seconds that plain steps have cost."""

    seconds: float = 0.0

    @contextmanager
    def counting(self) -> Iterator[None]:
        """What is done within counts."""
        began = time.thread_time()
        yield
        self.seconds += time.thread_time() - began


@lru_cache(maxsize=64)
def spent_on(text: Callable[[int], str], variant: int) -> Spent:
    """On the plain form of a function by where its text comes from. It decides when to compile, and nothing else."""
    return Spent()


@lru_cache(maxsize=64)
def _native(text: Callable[[int], str], variant: int) -> NativeFunction:
    return NativeFunction(object_for(text(variant), loops=True))


@lru_cache(maxsize=64)
def _is_kept(text: Callable[[int], str], variant: int) -> bool:
    return kept_object(text(variant), loops=True) is not None


@lru_cache(maxsize=8)
def numbers(count: int) -> Array:
    """0, 1, 2 and so on, kept: the threads of an access that all make."""
    return np.arange(count, dtype=np.int64)


def address_of(array: Array) -> int:
    """Where its elements stand."""
    return array.__array_interface__["data"][0]


class LazyFunction:
    """The function `text(variant)`, for one launch."""

    __slots__ = ("_native", "_spent", "_text", "_variant", "_words")

    def __init__(self, text: Callable[[int], str], variant: int, words: int) -> None:
        self._text, self._variant = text, variant
        how = mode()
        self._native: NativeFunction | None = None
        self._spent = None if how == "0" or not available() else Spent(float("inf")) if how == "always" else spent_on(text, variant)
        self._words = ctypes.c_int64 * words

    def ready(self) -> bool:
        """Whether it is compiled, or now pays to be."""
        if self._native is None and self._spent is not None:
            spent = self._spent.seconds - load_seconds()
            if spent > LOOPS_SECONDS or (spent > KEPT_SECONDS and _is_kept(self._text, self._variant)):
                self._native = _native(self._text, self._variant)
        return self._native is not None

    def plainly(self, act: Callable[[], object]) -> None:
        """The plain form in its place: what that costs counts."""
        if self._spent is None or self._native is not None:
            act()
            return
        with self._spent.counting():
            act()

    def call(self, words: Sequence[int], first: int, second: int) -> int:
        """Its answer. It must be ready."""
        assert self._native is not None
        return self._native.call(self._words(*words), first, second)
