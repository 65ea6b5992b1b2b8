"""Runs an item of the corpus, or a changed copy of its code, on the chip's simulator through the Device protocol."""

from __future__ import annotations

import functools
import importlib
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from oracles.case import Described, InOut, Input, Number, Output
from oracles.chips import Chip
from oracles.corpus import Box, Item
from tilefw.api import ALL_CHECKS, Artifact, Backend, BufferView, Device, LaunchOptions, LaunchReport, Scalar, Struct

# PTX's names of the elements of arrays that descriptors tell of; floats of 8 bits are bytes to an engine.
_ELEMENTS = {
    "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64", "int32": "s32", "int8": "u8", "uint8": "u8",
    "float8_e4m3fn": "u8", "float8_e5m2": "u8",
}


@dataclass(frozen=True)
class Outcome:
    """Buffers after the launch by parameter name, and the simulator's report."""

    outputs: dict[str, np.ndarray]
    report: LaunchReport


@functools.cache
def backend(target: str) -> Backend:
    """The plugin's backend, found the way core finds it: by its hook's plain data."""
    vendor = target.partition("-")[0]
    plugin = importlib.import_module(f"tilefw_{vendor}.plugin")
    info = next(info for info in plugin.tilefw_targets() if info.name == target)
    module, _, name = info.backend.partition(":")
    return getattr(importlib.import_module(module), name)(info)


def parse(code: str | bytes, name: str, chip: Chip) -> Artifact:
    form = chip.form if isinstance(code, bytes) or chip.form == chip.text else "s"
    return backend(chip.target).parse(code, f"{name}.{form}")


def run(item: Item, artifact: Artifact | None = None, device: Device | None = None, **options: object) -> Outcome:
    """Launch `artifact` (the item's own code when None) on the item's data, in a fresh simulator, all checks on, or on `device`.

    `options` override those of the launch (`seed`, `budget`, `numerics`, `checks`).
    """
    artifact = artifact or parse(item.code, item.name, item.chip)
    device = device or backend(item.chip.target).simulator()
    handles: dict[str, tuple[int, np.ndarray]] = {}
    arguments: list[BufferView | Scalar | Struct] = []
    boxes = iter(item.launch.boxes)
    for name, argument in item.inputs.items():
        if isinstance(argument, Number):
            arguments.append(Scalar(argument.value, argument.dtype))
            continue
        if isinstance(argument, Described):
            handle, array = handles[name] = _buffer(device, name, argument.buffer)
            arguments += _descriptor(device, handle, array, next(boxes), item)
            continue
        handle, _ = handles[name] = _buffer(device, name, argument)
        arguments.append(BufferView(handle))
    scratch = item.launch.scratch * math.prod(item.launch.grid)
    hidden = [device.allocate(scratch, label="scratch")] if scratch else []
    arguments += [BufferView(handle) for handle in (*hidden, *[0] * (item.launch.hidden - len(hidden)))]
    merged = {"block": item.launch.block, "dynamic_shared": item.launch.dynamic_shared, "checks": ALL_CHECKS, **options}
    report = device.launch(device.load(artifact), item.entry, item.launch.grid, arguments, LaunchOptions(**merged))
    if report.completion is not None:
        report.completion.wait()
    outputs = {
        name: np.frombuffer(device.read(handle, array.nbytes), np.uint8).view(array.dtype).reshape(array.shape)
        for name, (handle, array) in handles.items()
    }
    return Outcome(outputs, report)


def _buffer(device: Device, name: str, argument: Input | Output | InOut) -> tuple[int, np.ndarray]:
    """A buffer of the device with what the kernel finds there, and an array of its shape."""
    array = np.empty(argument.shape, argument.dtype) if isinstance(argument, Output) else np.ascontiguousarray(argument.array)
    handle = device.allocate(array.nbytes, label=name)
    if isinstance(argument, InOut):
        device.write(handle, array.view(np.uint8).data)
    elif isinstance(argument, Input):
        _write(device, handle, array, argument.written)
    return handle, array


def _descriptor(device: Any, handle: int, array: np.ndarray, box: Box, item: Item) -> list[Scalar | Struct]:
    """What a host passes for a tensor descriptor: the engine's map, and for Triton's code the array's sizes and strides."""
    sizes = [Scalar(size, "i32") for size in array.shape]
    strides = [Scalar(stride // array.itemsize, "i64") for stride in array.strides]
    strides_in_bytes, (shape, swizzle) = array.strides[:-1][::-1], box
    made = device.tensor_map(
        BufferView(handle), array.shape[::-1], strides_in_bytes, shape[::-1], element=_ELEMENTS[array.dtype.name], swizzle=swizzle
    )
    return [made, *(sizes + strides if item.launch.hidden else [])]


def _write(device: object, handle: int, array: np.ndarray, written: np.ndarray | None) -> None:
    """Copy the array in; only the runs of elements that are written, where some are not."""
    if written is None:
        device.write(handle, array.view(np.uint8).data)
        return
    flat, mask = array.reshape(-1), np.ascontiguousarray(written).reshape(-1)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]])))
    for start, end in edges.reshape(-1, 2):
        device.write(handle, flat[start:end].view(np.uint8).data, offset=int(start) * array.itemsize)
