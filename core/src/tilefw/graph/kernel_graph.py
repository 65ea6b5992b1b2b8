"""A model before it has a target: named inputs and outputs, constants, and calls of kernels in the order in which they run.

A reader of models makes one with `GraphBuilder`; `compile_graph` makes a plan of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np

from tilefw.api.cost import LaunchWork
from tilefw.api.dtypes import dtype as dtype_named
from tilefw.api.errors import UsageError
from tilefw.graph.product_tiles import ProductExtents
from tilefw.kernels.formats import array_dtype

UNCOUNTED = LaunchWork()


@dataclass(frozen=True, slots=True)
class ModelTensor:
    """Elements of type `dtype` in row-major order, from byte `offset` of the buffer with number `buffer` on."""

    buffer: int
    dtype: str
    shape: tuple[int, ...]
    offset: int = 0

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * (dtype_named(self.dtype).storage_bits // 8)

    def reshaped(self, shape: Sequence[int]) -> ModelTensor:
        """The same elements in another shape."""
        assert prod(shape) == prod(self.shape), f"{self.shape} has not the elements of {tuple(shape)}"
        return ModelTensor(self.buffer, self.dtype, tuple(shape), self.offset)


@dataclass(frozen=True, slots=True)
class ModelBuffer:
    """Memory of a model, of each rank where several run it. `constant` holds the bytes of a buffer that nothing writes, `parts` has
    those of each rank where they differ. One that is `zeroed` is full of zeros when a run begins. `dtype` names its elements in
    reports."""

    name: str
    nbytes: int
    dtype: str
    constant: memoryview | None = None
    parts: tuple[memoryview, ...] = ()
    zeroed: bool = False

    def of_rank(self, rank: int) -> ModelBuffer:
        """The buffer as a rank has it."""
        return ModelBuffer(self.name, self.nbytes, self.dtype, self.parts[rank]) if self.parts else self


@dataclass(frozen=True, slots=True)
class RankTransfer:
    """What a launch of all ranks at once means: the `collective` of each rank's `source` is each rank's `result`."""

    collective: str
    source: ModelTensor
    result: ModelTensor


@dataclass(frozen=True, slots=True)
class KernelCall:
    """One launch of a jit function: `arguments` are its run-time arguments by name, `keywords` those launch keywords that shape
    code. `label` is what reports call it, such as the name of a node. A kernel that computes a product by tiles has its
    extents in `product`; its grid is that of the usual tile, and `tiled` makes a target's own. One that all ranks launch at once
    has in `transfer` what it means."""

    label: str
    kernel: Any
    arguments: Mapping[str, ModelTensor | int | float | None]
    grid: tuple[int, int, int]
    constexprs: Mapping[str, Any] = field(default_factory=dict)
    keywords: Mapping[str, Any] = field(default_factory=dict)
    product: ProductExtents | None = None
    computed: LaunchWork = UNCOUNTED
    transfer: RankTransfer | None = None

    @property
    def work(self) -> LaunchWork:
        """What the launch does: `computed` is what who wrote its kernel counted, tensors are counted here."""
        tensors = {value for value in self.arguments.values() if isinstance(value, ModelTensor)}
        return LaunchWork(1, sum(tensor.nbytes for tensor in tensors)) + self.computed

    def tiled(self, limits: Mapping[str, int]) -> KernelCall:
        """The call as a target with these limits makes it."""
        if self.product is None:
            return self
        tile = self.product.tile(limits)
        constexprs, keywords = {**self.constexprs, **tile.constexprs}, {**self.keywords, "num_warps": tile.warps}
        return replace(self, grid=self.product.grid(tile), constexprs=constexprs, keywords=keywords)


@dataclass(frozen=True, slots=True)
class KernelGraph:
    """All that a model does, for any target; what each of `ranks` devices does, where there are several. Each is given its part of
    the inputs in `divided`, along the axis there, and the others whole."""

    buffers: tuple[ModelBuffer, ...]
    inputs: Mapping[str, ModelTensor]
    outputs: Mapping[str, ModelTensor]
    calls: tuple[KernelCall, ...]
    ranks: int = 1
    divided: Mapping[str, int] = field(default_factory=dict)


class GraphBuilder:
    """A graph being written: tensors as they come to be known, calls in the order in which they run."""

    def __init__(self, ranks: int = 1) -> None:
        self.ranks = ranks
        self._divided: dict[str, int] = {}
        self._buffers: list[ModelBuffer] = []
        self._inputs: dict[str, ModelTensor] = {}
        self._outputs: dict[str, ModelTensor] = {}
        self._calls: list[KernelCall] = []

    def input(self, name: str, dtype: str, shape: Sequence[int]) -> ModelTensor:
        """A tensor that a run is given under `name`."""
        tensor = self._inputs[name] = self.temporary(name, dtype, shape)
        return tensor

    def divided_input(self, name: str, dtype: str, shape: Sequence[int], axis: int) -> ModelTensor:
        """A tensor that a run is given, of which each rank has its part along an axis: `shape` is the part's."""
        self._divided[name] = axis
        return self.input(name, dtype, shape)

    def constant(self, name: str, array: np.ndarray[Any, Any], dtype: str) -> ModelTensor:
        """A tensor whose elements are known now: `array` has them in storage form (`array_dtype(dtype)`). They are copied where who
        gave them may still change them."""
        data = _held(array, dtype)
        return self._new(ModelBuffer(name, data.nbytes, dtype, data), array.shape)

    def constant_parts(self, name: str, arrays: Sequence[np.ndarray[Any, Any]], dtype: str) -> ModelTensor:
        """The same with other elements on each rank."""
        assert len(arrays) == self.ranks and len({one.shape for one in arrays}) == 1, f"{name}: a part of one shape for each rank"
        parts = tuple(_held(array, dtype) for array in arrays)
        return self._new(ModelBuffer(name, parts[0].nbytes, dtype, parts=parts), arrays[0].shape)

    def zeroed(self, name: str, dtype: str, shape: Sequence[int]) -> ModelTensor:
        """A tensor that calls write and read, full of zeros when a run begins."""
        return self._new(ModelBuffer(name, ModelTensor(0, dtype, tuple(shape)).nbytes, dtype, zeroed=True), shape)

    def temporary(self, name: str, dtype: str, shape: Sequence[int]) -> ModelTensor:
        """A tensor that calls write and read."""
        nbytes = ModelTensor(0, dtype, tuple(shape)).nbytes
        return self._new(ModelBuffer(name, nbytes, dtype), shape)

    def call(
        self, label: str, kernel: Any, arguments: Mapping[str, ModelTensor | int | float | None], grid: tuple[int, int, int],
        constexprs: Mapping[str, Any] | None = None, keywords: Mapping[str, Any] | None = None, computed: LaunchWork = UNCOUNTED,
    ) -> None:
        """Launch a jit function behind the calls so far. `computed` is what it computes, as far as that is known."""
        self._calls.append(KernelCall(label, kernel, arguments, grid, constexprs or {}, keywords or {}, computed=computed))

    def product(
        self, label: str, kernel: Any, arguments: Mapping[str, ModelTensor | int | float | None], extents: ProductExtents,
        computed: LaunchWork = UNCOUNTED,
    ) -> None:
        """Launch a jit function that computes products by tiles (`ProductTile`), behind the calls so far."""
        grid = extents.grid(extents.tile({}))
        self._calls.append(KernelCall(label, kernel, arguments, grid, product=extents, computed=computed))

    def add(self, call: KernelCall) -> None:
        """A call made elsewhere, behind the calls so far."""
        self._calls.append(call)

    def output(self, name: str, tensor: ModelTensor) -> None:
        """What a run gives under `name`: any tensor of the graph."""
        self._outputs[name] = tensor

    def graph(self) -> KernelGraph:
        """The graph so far."""
        buffers, calls = tuple(self._buffers), tuple(self._calls)
        return KernelGraph(buffers, dict(self._inputs), dict(self._outputs), calls, self.ranks, dict(self._divided))

    def _new(self, buffer: ModelBuffer, shape: Sequence[int]) -> ModelTensor:
        self._buffers.append(buffer)
        return ModelTensor(len(self._buffers) - 1, buffer.dtype, tuple(shape))


def _held(array: np.ndarray[Any, Any], dtype: str) -> memoryview:
    """The bytes of a constant, which nobody changes."""
    assert array.dtype.itemsize == dtype_named(dtype).storage_bits // 8, f"{array.dtype} does not store {dtype}"
    held = np.array(array, order="C") if array.flags.writeable else np.ascontiguousarray(array)
    data = held.reshape(-1).view(np.uint8)
    data.flags.writeable = False
    return data.data


def stored(name: str, tensor: ModelTensor, given: Any) -> np.ndarray[Any, Any]:
    """The array that a run is given for input `name`, in storage form. Raises UsageError TFW0360 for another shape or type."""
    try:
        array = np.asarray(given)
    except (TypeError, ValueError, RuntimeError) as error:  # of lists of lists, and of arrays of other libraries
        raise UsageError(f"input '{name}' is no array of NumPy: {error}", code="TFW0360") from None
    wanted = array_dtype(tensor.dtype)
    if array.shape != tensor.shape:
        raise UsageError(f"input '{name}' has shape {list(tensor.shape)}, not {list(array.shape)}", code="TFW0360")
    if array.dtype != wanted and not _same_bits(array.dtype, wanted):
        raise UsageError(f"input '{name}' has elements of {tensor.dtype}, not {array.dtype}", code="TFW0360")
    held = np.asarray(array, order="C")  # a scalar stays one, which ascontiguousarray gives a dim
    if wanted.kind == "b" and held.reshape(-1).view(np.uint8).max(initial=0) > 1:
        raise UsageError(f"input '{name}' has truth values other than 0 and 1", code="TFW0360")
    return held


def _same_bits(given: np.dtype[Any], wanted: np.dtype[Any]) -> bool:
    """Whether a file may hold elements of the one type as the other: NumPy writes types that it does not know as plain bytes
    (`np.void`; ml_dtypes has types of its own), and truth values are bytes."""
    if given.itemsize != wanted.itemsize:
        return False
    return given.type is np.void or ("b" in (given.kind, wanted.kind) and {given.kind, wanted.kind} <= {"b", "u", "i"})
