"""Reductions and scans as a chip may do them: a function on NumPy arrays of the format itself, in an order drawn at random."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from launching import launch

from tilefw.api.dtypes import DTYPES
from tilefw.tile.reference.value import EvaluatedValue

IR = {"fp32": "f32", "fp16": "f16", "int32": "i32", "int8": "i8", "int1": "i1", "fp64": "f64", "int64": "i64"}
Function = Callable[..., tuple[np.ndarray, ...]]


def in_some_order(arrays: Sequence[np.ndarray], function: Function, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Rows of `arrays` combined along the last axis: pieces are drawn at random and combined until one is left."""
    order = rng.permutation(arrays[0].shape[-1])
    pieces = [tuple(array[..., i] for array in arrays) for i in order]
    with np.errstate(all="ignore"):
        while len(pieces) > 1:
            left, right = pieces.pop(int(rng.integers(len(pieces)))), pieces.pop(int(rng.integers(len(pieces))))
            pieces.insert(int(rng.integers(len(pieces) + 1)), function(*left, *right))
    return pieces[0]


def in_some_groups(arrays: Sequence[np.ndarray], function: Function, rng: np.random.Generator) -> list[np.ndarray]:
    """The prefixes of rows of `arrays` along the last axis, in order; where a prefix is parted is drawn at random, prefix by prefix
    and part by part."""

    def run(first: int, end: int) -> tuple[np.ndarray, ...]:
        if end - first == 1:
            return tuple(array[..., first] for array in arrays)
        middle = int(rng.integers(first + 1, end))
        return function(*run(first, middle), *run(middle, end))

    with np.errstate(all="ignore"):
        prefixes = [run(0, end) for end in range(1, arrays[0].shape[-1] + 1)]
    return [np.stack(parts, axis=-1) for parts in zip(*prefixes, strict=True)]


def kernel_text(shape: Sequence[int], axis: int, elements: Sequence[str], body: str, scan: bool = False, words: str = "") -> str:
    """A kernel that combines whole arrays: argument i is loaded, reduced or scanned, and the result stored to argument n + i.

    `body` is the combine function's text on `%a0 … %b0 …`, up to and with its return; `words` stand behind the axis.
    """
    count = len(elements)
    left = list(shape) if scan else [size for dim, size in enumerate(shape) if dim != axis]
    types = [IR[element] for element in elements]
    lines = [f"func.func @f({', '.join(f'%p{i}: !tile.ptr<{t}>' for i, t in enumerate(types * 2))}) {{"]
    lines += ["  %z = tile.constant 0 : i32"]
    for size in {*strides(shape), *strides(left)}:
        lines.append(f"  %s{size} = tile.constant {size} : i32")
    for i, type in enumerate(types):
        lines.append(f"  %x{i} = tile.load_block %p{i} {_place(shape)} : !tile.ptr<{type}>, {tensor(shape, type)}")
    arguments = ", ".join([f"%a{i}: {t}" for i, t in enumerate(types)] + [f"%b{i}: {t}" for i, t in enumerate(types)])
    name = "scan" if scan else "reduce"
    names, kinds = ", ".join(f"%x{i}" for i in range(count)), ", ".join(tensor(shape, t) for t in types)
    lines += [f"  {', '.join(f'%r{i}' for i in range(count))} = tile.{name} {names} axis {axis}{words} : {kinds} {{"]
    lines += [f"  ^bb0({arguments}):", body, "  }"]
    for i, type in enumerate(types):
        if left:
            lines.append(f"  tile.store_block %p{count + i}, %r{i} {_place(left)} : !tile.ptr<{type}>, {tensor(left, type)}")
        else:
            lines.append(f"  tile.store %p{count + i}, %r{i} : !tile.ptr<{type}>")
    return "\n".join([*lines, "  func.return", "}"])


def reduced(arrays: Sequence[np.ndarray], axis: int, elements: Sequence[str], body: str) -> list[EvaluatedValue]:
    """What the reference says of a reduction of whole arrays."""
    text = kernel_text(arrays[0].shape, axis, elements, body)
    return _run(text, arrays, elements, arrays[0].size // arrays[0].shape[axis])


def scanned(
    arrays: Sequence[np.ndarray], axis: int, elements: Sequence[str], body: str, reverse: bool = False
) -> list[EvaluatedValue]:
    """What the reference says of a scan of whole arrays, flat."""
    text = kernel_text(arrays[0].shape, axis, elements, body, True, " reverse" if reverse else "")
    return _run(text, arrays, elements, arrays[0].size)


def _run(text: str, arrays: Sequence[np.ndarray], elements: Sequence[str], size: int) -> list[EvaluatedValue]:
    outputs = [(size * array.itemsize,) for array in arrays]
    memory = launch(text, [np.ascontiguousarray(array) for array in arrays] + outputs)
    assert not memory[0].findings
    return [memory[1][len(arrays) + i].read_reference(DTYPES[element]) for i, element in enumerate(elements)]


def tensor(shape: Sequence[int], element: str) -> str:
    """The text of a tile type."""
    return f"tensor<{'x'.join(map(str, shape))}x{element}>"


def strides(shape: Sequence[int]) -> list[int]:
    """Row-major strides in elements."""
    found = [1]
    for size in reversed(shape[1:]):
        found.insert(0, found[0] * size)
    return found if shape else []


def _place(shape: Sequence[int]) -> str:
    kinds = ", ".join(["i32"] * len(shape))
    steps = ", ".join(f"%s{step}" for step in strides(shape))
    return f"at ({', '.join(['%z'] * len(shape))} : {kinds}) strides ({steps} : {kinds})"
