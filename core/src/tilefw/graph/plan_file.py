"""A plan in one file, `.tfm`: one line with magic and digest, a JSON header, then the kernels and the constants as bytes.

    tilefw-model/3 <SHA-256 of what follows, in hex>
    <bytes of the header>
    <header>

Behind the header each part begins at a multiple of 64 bytes of the file. Constants are mapped into memory, never copied; nothing in
the file is executed or unpickled. A file that is cut short, changed or of another kind is a CodeError before any of it is used.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
from collections.abc import Iterator, Mapping
from typing import Any

from tilefw import __version__
from tilefw.api import json_values as values
from tilefw.api.artifact import Artifact, decode, encode
from tilefw.api.device import Scalar
from tilefw.api.dtypes import DTYPES
from tilefw.api.dtypes import dtype as dtype_named
from tilefw.api.errors import CodeError, KernelError
from tilefw.distributed.symmetric_heap import MOST_RANKS
from tilefw.graph.collective_kinds import COLLECTIVE_KINDS
from tilefw.graph.kernel_graph import ModelBuffer, ModelTensor, RankTransfer
from tilefw.graph.mapped_constants import require_whole
from tilefw.graph.plan import ModelPlan, PlanArgument, PlanKernel, PlanLink, PlanStep
from tilefw.runtime import atomic_write
from tilefw.runtime.arguments.binding import GRID_LIMIT, scalar

MAGIC = b"tilefw-model/3"
_ALIGNMENT = 64
_LINE = len(MAGIC) + 1 + 64 + 1  # bytes of the first line
_DIGITS = 20  # of the second line at most
_LARGEST = 1 << 62  # bytes of one buffer


def save(plan: ModelPlan, path: str | os.PathLike[str]) -> str:
    """Write a plan's file, whole or not at all; gives its digest. Raises OSError."""
    digest = hashlib.sha256()
    for part in _parts(plan):
        digest.update(part)
    first = b"%b %b\n" % (MAGIC, digest.hexdigest().encode())
    atomic_write.write_parts(path, (part for parts in ((first,), _parts(plan)) for part in parts))
    return digest.hexdigest()


def load(path: str | os.PathLike[str]) -> ModelPlan:
    """The plan in a file. Raises CodeError: TFW0930 where it cannot be read, TFW0782 for a file that `save` did not write."""
    name = os.fspath(path)
    data = _mapped(name)
    try:
        return _from_bytes(data, name)
    except (ValueError, KeyError, TypeError, IndexError, OverflowError, RecursionError, KernelError) as error:
        raise CodeError(
            f"{name} is not a whole model of tilefw: {error.message if isinstance(error, KernelError) else error}", code="TFW0782",
            help="make it again with `tilefw compile MODEL --target T -o FILE.tfm`",
        ) from None


def _mapped(name: str) -> memoryview:
    try:
        if not os.path.isfile(name):
            raise OSError("there is no such file" if not os.path.exists(name) else "it is not a regular file")
        with open(name, "rb") as file:
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if os.path.getsize(name) else b"")
    except OSError as error:
        raise CodeError(f"{name} cannot be read: {error.strerror or error}", code="TFW0930") from None


# -- written


def _parts(plan: ModelPlan) -> Iterator[bytes | memoryview]:
    """The file behind its first line."""
    kernels = [(encode(kernel.artifact), kernel.source.encode()) for kernel in plan.kernels]
    blobs: list[bytes | memoryview] = [part for pair in kernels for part in pair]
    links = [(encode(link.artifact), encode(link.observed)) for link in plan.links]
    blobs += [part for pair in links for part in pair]
    for buffer in plan.buffers:
        for held in _blobs_of(buffer):
            require_whole(buffer.name, held)
            blobs.append(held)
    lengths, linked = ([(len(a), len(b)) for a, b in pairs] for pairs in (kernels, links))
    header = json.dumps(_to_json(plan, lengths, linked), separators=(",", ":")).encode()
    start = b"%d\n%b" % (len(header), header)
    yield start
    at = _LINE + len(start)
    for blob in blobs:
        gap = -at % _ALIGNMENT
        yield bytes(gap)
        yield blob
        at += gap + len(blob)


def _to_json(plan: ModelPlan, lengths: list[tuple[int, int]], linked: list[tuple[int, int]]) -> dict[str, Any]:
    return {
        "made_by": __version__,
        "target": plan.target,
        "ranks": plan.ranks,
        "divided": dict(plan.divided),
        "buffers": [[b.name, b.nbytes, b.dtype, len(_blobs_of(b)), b.zeroed] for b in plan.buffers],
        "kernels": [[*pair, kernel.fusion] for pair, kernel in zip(lengths, plan.kernels, strict=True)],
        "links": [
            [*pair, one.first, one.count, list(one.buffers), list(one.observed_buffers), one.ended]
            for pair, one in zip(linked, plan.links, strict=True)
        ],
        "inputs": {name: _tensor_to_json(tensor) for name, tensor in plan.inputs.items()},
        "outputs": {name: _tensor_to_json(tensor) for name, tensor in plan.outputs.items()},
        "steps": [
            [s.label, s.kernel, list(s.grid), [_argument_to_json(a) for a in s.arguments], _transfer_to_json(s.transfer)]
            for s in plan.steps
        ],
    }


def _blobs_of(buffer: ModelBuffer) -> tuple[memoryview, ...]:
    """What a file has of a buffer: the bytes of a constant, or those of each rank."""
    return buffer.parts if buffer.constant is None else (buffer.constant,)


def _transfer_to_json(transfer: RankTransfer | None) -> Any:
    if transfer is None:
        return None
    return [transfer.collective, _tensor_to_json(transfer.source), _tensor_to_json(transfer.result)]


def _tensor_to_json(tensor: ModelTensor) -> list[Any]:
    return [tensor.buffer, tensor.dtype, list(tensor.shape), tensor.offset]


def _argument_to_json(argument: PlanArgument) -> Any:
    if isinstance(argument, Scalar):
        value = argument.value
        return {"value": value.hex() if isinstance(value, float) else value, "dtype": argument.dtype}
    return None if argument is None else _tensor_to_json(argument)


# -- read


def _from_bytes(data: memoryview, name: str) -> ModelPlan:
    first = bytes(data[:_LINE])
    magic, _, digest = first.partition(b" ")
    if magic != MAGIC or not first.endswith(b"\n"):
        raise ValueError(f"it does not start with {MAGIC.decode()!r}")
    if hashlib.sha256(data[_LINE:]).hexdigest().encode() != digest[:-1]:
        raise ValueError("its digest does not fit its content: it is cut short or changed")
    length, newline, _ = bytes(data[_LINE : _LINE + _DIGITS]).partition(b"\n")
    start = _LINE + len(length) + 1
    if not newline or not length.isdigit() or start + int(length) > len(data):
        raise ValueError("its header is cut short")
    header = json.loads(bytes(data[start : start + int(length)]))
    values.checked(header, dict, "the header")
    return _plan(header, _Blobs(data, start + int(length)), name)


class _Blobs:
    """The parts behind the header, one after the other."""

    def __init__(self, data: memoryview, at: int) -> None:
        self._data, self._at = data, at

    def next(self, nbytes: Any) -> memoryview:
        values.checked(nbytes, int, "the length of a part")
        start = self._at + -self._at % _ALIGNMENT
        if nbytes < 0 or start + nbytes > len(self._data):
            raise ValueError("a part of it is missing")
        self._at = start + nbytes
        return self._data[start : self._at]


def _plan(header: dict[str, Any], blobs: _Blobs, name: str) -> ModelPlan:
    target = values.string(header, "target")
    kernels = tuple(_kernel(raw, blobs, name) for raw in values.array(header, "kernels"))
    if any(kernel.artifact.target != target for kernel in kernels):
        raise ValueError(f"it has machine code of another target than {target}")
    linked = [_link_artifacts(raw, blobs, name, target) for raw in values.array(header, "links")]
    ranks = values.checked(header["ranks"], int, "ranks")
    if not 1 <= ranks <= MOST_RANKS:
        raise ValueError(f"it is for {ranks} devices")
    buffers = tuple(_buffer(raw, blobs, ranks) for raw in values.array(header, "buffers"))
    inputs, outputs = (
        {key: _tensor(raw, buffers) for key, raw in values.checked(header[part], dict, part).items()}
        for part in ("inputs", "outputs")
    )
    steps = tuple(_step(raw, kernels, buffers) for raw in values.array(header, "steps"))
    links = _links(values.array(header, "links"), linked, len(steps), buffers)
    divided = _divided(values.checked(header["divided"], dict, "divided"), inputs)
    plan = ModelPlan(target, buffers, kernels, _whole_inputs(inputs, buffers), outputs, steps, links, ranks, divided)
    if plan.on_node and links:
        raise ValueError("a plan for a node has links")
    if lacking := plan.unwritten():
        raise ValueError(f"nothing writes its output {lacking[0]!r}")
    return plan


def _whole_inputs(inputs: Mapping[str, ModelTensor], buffers: tuple[ModelBuffer, ...]) -> Mapping[str, ModelTensor]:
    for key, tensor in inputs.items():
        buffer = buffers[tensor.buffer]
        if _blobs_of(buffer) or tensor.offset or tensor.nbytes != buffer.nbytes:
            raise ValueError(f"input {key!r} is not a buffer of its own")
    return inputs


def _kernel(raw: Any, blobs: _Blobs, name: str) -> PlanKernel:
    code, source, fusion = values.checked(raw, list, "a kernel")
    artifact = decode(bytes(blobs.next(code)), name)
    if len(artifact.entries) != 1:
        raise ValueError("a kernel of it has not one entry")
    return PlanKernel(artifact, bytes(blobs.next(source)).decode(), values.checked(fusion, bool, "fusion"))


def _link_artifacts(raw: Any, blobs: _Blobs, name: str, target: str) -> tuple[Artifact, Artifact]:
    first, second, *_ = values.checked(raw, list, "a link")
    pair = decode(bytes(blobs.next(first)), name), decode(bytes(blobs.next(second)), name)
    if any(len(artifact.entries) != 1 or artifact.target != target for artifact in pair):
        raise ValueError(f"a link of it has not one entry for {target}")
    return pair


def _links(
    raws: list[Any], artifacts: list[tuple[Artifact, Artifact]], steps: int, buffers: tuple[ModelBuffer, ...]
) -> tuple[PlanLink, ...]:
    found: list[PlanLink] = []
    least = 0
    for raw, (artifact, observed) in zip(raws, artifacts, strict=True):
        _, _, first, count, numbers, all_numbers, ended = raw
        values.checked(first, int, "a step's number")
        if not least <= first or values.checked(count, int, "a number of steps") < 2 or first + count > steps:
            raise ValueError(f"a link of {count} steps from {first} on")
        least = first + count
        why = values.checked(ended, str, "why a link ends")
        pairs = (_taken(numbers, artifact, buffers), _taken(all_numbers, observed, buffers))
        found.append(PlanLink(first, count, artifact, pairs[0], observed, pairs[1], why))
    return tuple(found)


def _taken(numbers: Any, artifact: Artifact, buffers: tuple[ModelBuffer, ...]) -> tuple[int, ...]:
    """The buffers that the entry of a link's artifact takes."""
    taken = tuple(values.checked(number, int, "a buffer") for number in values.checked(numbers, list, "buffers"))
    parameters = artifact.entry().parameters
    fits = all(0 <= number < len(buffers) for number in taken) and [one.kind for one in parameters] == ["pointer"] * len(taken)
    stored = [number for number, one in zip(taken, parameters, strict=True) if one.readonly is False] if fits else []
    if not fits or any(_blobs_of(buffers[number]) for number in stored):
        raise ValueError("the buffers of a link do not fit its entry")
    return taken


def _divided(raw: Mapping[str, Any], inputs: Mapping[str, ModelTensor]) -> dict[str, int]:
    for name, axis in raw.items():
        if name not in inputs or not 0 <= values.checked(axis, int, "an axis") < len(inputs[name].shape):
            raise ValueError(f"there is no axis {axis} of an input {name!r}")
    return dict(raw)


def _buffer(raw: Any, blobs: _Blobs, ranks: int) -> ModelBuffer:
    name, nbytes, dtype, held, zeroed = values.checked(raw, list, "a buffer")
    values.checked(name, str, "a buffer's name")
    if not 0 <= values.checked(nbytes, int, "a buffer's size") <= _LARGEST or dtype not in DTYPES:
        raise ValueError(f"buffer {name!r} has {nbytes} bytes of {dtype!r}")
    if values.checked(held, int, "a number of parts") not in (0, 1, ranks) or (values.checked(zeroed, bool, "zeroed") and held):
        raise ValueError(f"buffer {name!r} has {held} contents of {ranks} ranks")
    parts = tuple(blobs.next(nbytes) for _ in range(held))
    whole = parts[0] if held == 1 else None
    return ModelBuffer(name, nbytes, dtype, whole, parts if held > 1 else (), zeroed)


def _tensor(raw: Any, buffers: tuple[ModelBuffer, ...]) -> ModelTensor:
    buffer, dtype, shape, offset = values.checked(raw, list, "a tensor")
    extents = tuple(values.checked(extent, int, "an extent") for extent in values.checked(shape, list, "a shape"))
    if dtype not in DTYPES or any(extent < 0 for extent in extents) or len(extents) > 64:
        raise ValueError(f"a tensor of {dtype!r} with shape {shape}")
    tensor = ModelTensor(values.checked(buffer, int, "a buffer"), dtype, extents, values.checked(offset, int, "an offset"))
    if not 0 <= tensor.buffer < len(buffers):
        raise ValueError(f"there is no buffer {buffer}")
    if offset < 0 or offset % (dtype_named(dtype).storage_bits // 8) or offset + tensor.nbytes > buffers[tensor.buffer].nbytes:
        raise ValueError(f"a tensor leaves buffer {buffers[tensor.buffer].name!r}")
    return tensor


def _step(raw: Any, kernels: tuple[PlanKernel, ...], buffers: tuple[ModelBuffer, ...]) -> PlanStep:
    label, kernel, grid, arguments, transfer = values.checked(raw, list, "a step")
    extents = [values.checked(extent, int, "a grid's extent") for extent in values.checked(grid, list, "a grid")]
    if len(extents) != 3 or not all(1 <= extent <= GRID_LIMIT for extent in extents):
        raise ValueError(f"a grid of {extents}")
    if not 0 <= values.checked(kernel, int, "a kernel's number") < len(kernels):
        raise ValueError(f"there is no kernel {kernel}")
    parameters = kernels[kernel].entry.parameters
    given = [_argument(a, buffers) for a in values.checked(arguments, list, "arguments")]
    kinds = [a.dtype if isinstance(a, Scalar) else "pointer" for a in given]
    if kinds != [p.dtype if p.kind == "scalar" else p.kind for p in parameters]:
        raise ValueError(f"the arguments of {label!r} do not fit its kernel")
    x, y, z = extents
    return PlanStep(values.checked(label, str, "a label"), kernel, (x, y, z), tuple(given), _transfer(transfer, given, buffers))


def _transfer(raw: Any, given: list[PlanArgument], buffers: tuple[ModelBuffer, ...]) -> RankTransfer | None:
    if raw is None:
        return None
    kind, source, result = values.checked(raw, list, "a transfer")
    found = RankTransfer(values.checked(kind, str, "a collective"), _tensor(source, buffers), _tensor(result, buffers))
    if kind not in COLLECTIVE_KINDS or found.source not in given or found.result not in given:
        raise ValueError(f"a transfer {kind!r} of other tensors than its launch")
    return found


def _argument(raw: Any, buffers: tuple[ModelBuffer, ...]) -> PlanArgument:
    if raw is None:
        return None
    if isinstance(raw, list):
        return _tensor(raw, buffers)
    dtype = values.string(values.checked(raw, dict, "an argument"), "dtype")
    if dtype not in DTYPES:
        raise ValueError(f"a number of {dtype!r}")
    value = raw["value"]
    number = float.fromhex(value) if isinstance(value, str) else values.checked(value, int, "a number")
    return Scalar(scalar("a number", number, dtype_named(dtype)), dtype)
