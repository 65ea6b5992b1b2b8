"""What the reference interpreter says of a launch: value, error bound and free mask of every element that it may have written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tilefw.api.dtypes import dtype
from tilefw.kernels import formats
from tilefw.kernels.spec import Buffer
from tilefw.runtime.arguments.arrays import HostArray, Storage, TypedArray, host_array, storages
from tilefw.runtime.diagnostics import check_error
from tilefw.sparse_arrays import PAGE_BYTES, occupied
from tilefw.tile.reference.accuracy import Comparison, compare
from tilefw.tile.reference.interpret import RefBuffer, RefMemory, RefPointer, run
from tilefw.tile.reference.value import EvaluatedValue

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp


def typed(value: Buffer | int | float | None) -> Any:
    """An argument as the runtime takes it: a buffer with its element type said."""
    return TypedArray(value.array, dtype(value.dtype)) if isinstance(value, Buffer) else value


class Reference:
    """One launch on the interpreter, over copies of the arguments' storage: the arrays themselves stay as they are.

    `module` is tile IR as the front end made it: no pass had a chance to break it. `values` are the run-time arguments of the
    entry, in order.
    """

    def __init__(
        self, module: ModuleOp | str, grid: Sequence[int], values: Mapping[str, Any], *, fusion: bool = True, budget: int
    ) -> None:
        memory = RefMemory()
        self.hosts = {name: host_array(value) for name, value in values.items() if isinstance(value, TypedArray)}
        self.stores = storages(list(self.hosts.items()))
        self.buffers = [_copied(memory, storage) for storage in self.stores]
        args = [self._argument(name, value) for name, value in values.items()]
        self.report = run(module, None, grid, args, memory=memory, fusion=fusion, budget=budget)
        if errors := [finding for finding in self.report.findings if finding.severity == "error"]:
            raise check_error(errors)

    def compare(self, name: str) -> Comparison:
        """The array of argument `name` as the launch left it, against the interpreter's."""
        host = self.hosts[name]
        return compare(comparable(_elements(host), host.dtype.name), self._viewed(name))

    def compare_values(self, name: str, values: np.ndarray) -> Comparison:
        """`values` (integers, or float64 not yet rounded) of the shape of argument `name`, against the interpreter's."""
        kind = self.hosts[name].dtype
        rounded = formats.decode(formats.encode(values, kind.name), kind.name) if kind.is_float else values
        if kind.is_float and kind.specials == "ieee":
            rounded = np.where(np.isinf(values), values, rounded)  # only a rounding of what is finite saturates, for fp8e5
        return compare(_signed(rounded, kind.name), self._viewed(name))

    def values(self, name: str) -> np.ndarray:
        """The interpreter's values of argument `name`, in the shape of its array: float64 not yet rounded, or integers."""
        return self._viewed(name).x

    def covers_storage(self, name: str) -> bool:
        """Whether the array of argument `name` is all of its storage."""
        host = self.hosts[name]
        count = int(np.prod(host.shape))
        return count * (host.dtype.storage_bits // 8) == self._below(name)[0].nbytes

    def compare_around(self, name: str) -> Comparison:
        """All of the storage below argument `name`: what the kernel must not touch is still as it was."""
        storage, buffer = self._below(name)
        kind = self.hosts[name].dtype
        size = kind.storage_bits // 8
        found = storage.view()[: storage.nbytes // size * size].view(formats.array_dtype(kind.name))
        due = buffer.read_reference(kind)
        index = occupied(found, due.x, PAGE_BYTES // size)
        if index is None:
            return compare(comparable(found, kind.name), due)
        compared = compare(comparable(found[index], kind.name), due.apply(lambda part: part[index]))
        worst = None if compared.worst_index is None else (int(index[compared.worst_index]),)
        return replace(compared, worst_index=worst)

    def _argument(self, name: str, value: Any) -> Any:
        if name not in self.hosts:
            return value
        storage, buffer = self._below(name)
        return RefPointer(buffer, self.hosts[name].address - storage.start)

    def _below(self, name: str) -> tuple[Storage, RefBuffer]:
        start = self.hosts[name].start
        index = next(i for i, s in enumerate(self.stores) if s.start <= start <= s.start + s.nbytes)
        exact = [i for i, s in enumerate(self.stores) if s.start <= start < s.start + max(1, s.nbytes)]
        index = exact[0] if exact else index
        return self.stores[index], self.buffers[index]

    def _viewed(self, name: str) -> EvaluatedValue:
        """The interpreter's elements in the shape and order of the argument's array."""
        host, (storage, buffer) = self.hosts[name], self._below(name)
        whole = buffer.read_reference(host.dtype)
        size = host.dtype.storage_bits // 8
        first = (host.address - storage.start) // size
        strides = [step // size for step in host.strides]
        index = first + sum(
            (np.arange(n).reshape([-1 if d == axis else 1 for d in range(len(host.shape))]) * step
             for axis, (n, step) in enumerate(zip(host.shape, strides, strict=True))), start=np.zeros(host.shape, np.int64),
        )
        return whole.apply(lambda part: part[index])


def _copied(memory: RefMemory, storage: Storage) -> RefBuffer:
    return memory.of_array(storage.view(), storage.label, storage.readonly)


def _elements(host: HostArray) -> np.ndarray:
    """The array itself, as it is in memory now."""
    array = host.keep[0]
    return array.array if isinstance(array, TypedArray) else array


def comparable(array: np.ndarray, name: str) -> np.ndarray:
    """An array in storage form as values that can be compared with the interpreter's."""
    return _signed(formats.decode(array, name), name)


def _signed(values: np.ndarray, name: str) -> np.ndarray:
    """Integers as the interpreter has them: signless ones read as signed, i1 as 0 and 1."""
    kind = dtype(name)
    if kind.is_float or kind.bits == 1:
        return values.astype(np.float64 if kind.is_float else np.int64)
    return formats.wrap(values, f"int{kind.bits}")
