"""Kernels written for Iris, on a simulated node: the device functions of a checkout as they are, and its host object in our place.

Iris's device functions are plain Triton over a tensor of heap bases; its host objects need cards and their libraries. So of a file
the functions under `@triton.jit` are taken, each from its own line, and nothing else is run: neither its imports nor its program.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.api.errors import CodeError, UsageError

DEVICE_FUNCTIONS = Path("iris", "iris.py")
"""Where a checkout has them."""


class SymmetricMemory(Protocol):
    """What is asked of a node (`tilefw.node`)."""

    num_ranks: int

    @property
    def heap_bases(self) -> np.ndarray: ...
    def array(self, values: Any, dtype: Any = None) -> Any: ...


def kernels(path: Path, iris: ModuleType | None = None) -> ModuleType:
    """The jit functions of a file of a checkout, in a module of their own in which `iris` means the given one.

    Raises CodeError TFW0780 for a file that cannot be read, or that has none."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    except (OSError, SyntaxError, UnicodeDecodeError) as error:
        raise CodeError(f"{path} cannot be read as Python: {error}", "TFW0780") from None
    functions: list[ast.stmt] = [node for node in tree.body if isinstance(node, ast.FunctionDef) and _is_jit(node)]
    if not functions:
        raise CodeError(f"{path} has no function under @triton.jit", "TFW0780")
    found = ModuleType(f"iris_kernels_{abs(hash(path))}")
    triton = ModuleType("triton")
    vars(triton).update(jit=tilefw.jit, language=tl, cdiv=tilefw.cdiv)
    vars(found).update(triton=triton, tl=tl, __file__=str(path), **({} if iris is None else {"iris": iris}))
    sys.modules[found.__name__] = found  # where Python looks for the text of what was defined there
    exec(compile(ast.Module(functions, []), str(path), "exec"), vars(found))
    return found


def device_functions(checkout: Path) -> ModuleType:
    """What `import iris` is to a checkout's kernels."""
    return kernels(checkout / DEVICE_FUNCTIONS)


def _is_jit(node: ast.FunctionDef) -> bool:
    return any(ast.unparse(decorator).partition("(")[0] == "triton.jit" for decorator in node.decorator_list)


class IrisRank:
    """`iris.iris(heap_size)` of one rank: the n-th allocation of each rank is one array of all heaps. `all_ranks` makes them.

    Arrays are NumPy's. Launches of a node have ended when they return, so that a barrier of the host has nothing to wait for."""

    def __init__(self, node: SymmetricMemory, rank: int, allocated: list[Any]) -> None:
        self._node, self._rank, self._allocated, self._made = node, rank, allocated, 0

    def get_rank(self) -> int:
        """This rank's number."""
        return self._rank

    def get_num_ranks(self) -> int:
        """How many ranks there are."""
        return self._node.num_ranks

    def get_heap_bases(self) -> np.ndarray:
        """The address of each rank's heap, uint64."""
        return self._node.heap_bases.astype(np.uint64)

    def barrier(self) -> None:
        """All ranks' launches are done."""

    def zeros(self, *size: Any, dtype: Any = "int32", **ignored: Any) -> np.ndarray:
        """Zeros; as all that follow, keywords of PyTorch's that say no value are ignored."""
        return self._new(np.zeros(_shape(size), dtype))

    def ones(self, *size: Any, dtype: Any = "float32", **ignored: Any) -> np.ndarray:
        """Ones."""
        return self._new(np.ones(_shape(size), dtype))

    def empty(self, *size: Any, dtype: Any = "float32", **ignored: Any) -> np.ndarray:
        """An array to be written; it holds zeros."""
        return self.zeros(*size, dtype=dtype)

    def full(self, size: Any, fill_value: Any, dtype: Any = "int32", **ignored: Any) -> np.ndarray:
        """One value everywhere."""
        return self._new(np.full(_shape((size,)), fill_value, dtype))

    def arange(self, *bounds: Any, dtype: Any = "int64", **ignored: Any) -> np.ndarray:
        """Numbers in steps, as NumPy's."""
        return self._new(np.arange(*bounds, dtype=dtype))

    def randn(self, *size: Any, dtype: Any = "float32", **ignored: Any) -> np.ndarray:
        """Normal numbers, of each rank and allocation its own."""
        return self._new(self._generator().standard_normal(_shape(size)).astype(dtype))

    def uniform(self, size: Any, low: float = 0.0, high: float = 1.0, dtype: Any = "float32") -> np.ndarray:
        """Uniform numbers."""
        return self._new(self._generator().uniform(low, high, _shape((size,))).astype(dtype))

    def randint(self, size: Any, low: int, high: int, dtype: Any = "int32") -> np.ndarray:
        """Whole numbers from `low` to below `high`."""
        return self._new(self._generator().integers(low, high, _shape((size,))).astype(dtype))

    def _generator(self) -> np.random.Generator:
        return np.random.default_rng((self._rank, self._made))

    def _new(self, value: np.ndarray) -> np.ndarray:
        """This rank's copy of the next array. Raises UsageError TFW0902 where another rank's has another shape or type."""
        if self._made == len(self._allocated):
            self._allocated.append(self._node.array(np.zeros_like(value)))
        mine = self._allocated[self._made][self._rank]
        if (mine.shape, mine.dtype) != (value.shape, value.dtype):
            raise UsageError(
                f"allocation {self._made} of rank {self._rank} is {value.dtype}{list(value.shape)}, of another rank "
                f"{mine.dtype}{list(mine.shape)}", code="TFW0902", help="every rank makes the same allocations in the same order",
            )
        self._made += 1
        mine[...] = value
        return mine


def all_ranks(node: SymmetricMemory) -> Sequence[IrisRank]:
    """The host object of each rank."""
    allocated: list[Any] = []
    return [IrisRank(node, rank, allocated) for rank in range(node.num_ranks)]


def _shape(size: Any) -> tuple[int, ...]:
    """A shape as PyTorch takes it: numbers, or one sequence of them."""
    if len(size) == 1 and isinstance(size[0], tuple | list):
        size = size[0]
    return tuple(size)
