"""The text of a generated kernel: parameters as they come to be used, statements, and what its launch needs to know."""

from __future__ import annotations

import keyword
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import tilefw.language as tl
from tilefw.api.dtypes import dtype
from tilefw.api.integers import ceil_div
from tilefw.language.extra import libdevice
from tilefw.runtime.jit import JITFunction, jit
from tilefw_onnx.lowerings import functions
from tilefw_onnx.lowerings.node import Node, NodeTensor
from tilefw_onnx.lowerings.places import next_power_of_2

# What kernels compute 16-bit floats in, where an operator is more than one operation of the language.
WIDE = ("fp16", "bf16", "fp8e4nv", "fp8e5", "fp8e4b8", "fp8e5b16", "fp4e2m1")
_NAMES: Mapping[str, Any] = {"tl": tl, "libdevice": libdevice, "functions": functions}
_RESERVED = {*_NAMES, "index", "inside", "row", "column", "result", "range"}
_SPELLINGS = {
    "fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "fp64": "float64", "fp8e4nv": "float8e4nv", "fp8e5": "float8e5",
    "fp8e4b8": "float8e4b8", "fp8e5b16": "float8e5b16", "fp4e2m1": "float4e2m1",
}


def spelled(name: str) -> str:
    """An element type as kernels write it: `tl.float32` for fp32."""
    return f"tl.{_SPELLINGS.get(name, name)}"


def literal(value: Any, name: str) -> str:
    """A constant of element type `name` as kernels write it."""
    if dtype(name).is_float:
        number = float(value)
        return repr(number) if abs(number) < float("inf") else f"float({str(number)!r})"
    return str(int(value))


def least(name: str) -> str:
    """What no element of type `name` is below, as kernels write it."""
    kind = dtype(name)
    return "float('-inf')" if kind.is_float else str(-(1 << (kind.bits - 1)) if kind.is_signed else 0)


def largest(name: str) -> str:
    kind = dtype(name)
    return "float('inf')" if kind.is_float else str((1 << (kind.bits - kind.is_signed)) - 1)


def clipped(value: str, name: str) -> str:
    """The nearest number that element type `name` has, as kernels write it."""
    return f"tl.minimum(tl.maximum({value}, {least(name)}), {largest(name)})"


@dataclass(slots=True)
class KernelText:
    """A kernel being written. Tensors get their parameter when they are first used; the body's lines stand below each other."""

    node: Node
    grid: tuple[int, int, int] = (1, 1, 1)
    elements: int = 1  # of the largest tile, from which the number of warps follows
    tensors: dict[str, NodeTensor] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    asserts: bool = False  # whether it stops at an index that names no element, in a debug build

    def pointer(self, tensor: NodeTensor) -> str:
        """The parameter that points to the tensor's first element."""
        word = "".join(c if c.isalnum() else "_" for c in tensor.name)
        name = f"{word if not word[0].isdigit() else 'p' + word}_ptr"
        self.tensors[name] = tensor
        return name

    def variable(self, tensor: NodeTensor) -> str:
        """A name for the tensor's elements."""
        word = self.pointer(tensor).removesuffix("_ptr")
        return f"{word}_" if keyword.iskeyword(word) or word in _RESERVED else word

    def add(self, *lines: str) -> None:
        self.lines += lines

    def load(self, tensor: NodeTensor, offset: str, mask: str = "", other: str = "", wide: bool = False) -> str:
        """A load into the tensor's variable; `wide` computes 16-bit floats in fp32. Returns the variable."""
        name = self.variable(tensor)
        self.add(f"{name} = {self.loaded(tensor, offset, mask, other, wide)}")
        return name

    def loaded(self, tensor: NodeTensor, offset: str, mask: str = "", other: str = "", wide: bool = False) -> str:
        known = _masked(offset, mask)
        filler = f", other={other}" if known and other else ""
        cast = ".to(tl.float32)" if wide and tensor.dtype in WIDE else ""
        return f"tl.load({self.pointer(tensor)} + {offset}{known}{filler}){cast}"

    def store(self, tensor: NodeTensor, offset: str, value: str, mask: str = "") -> None:
        self.add(f"tl.store({self.pointer(tensor)} + {offset}, {value}{_masked(offset, mask)})")

    def require(self, holds: str, mask: str = "") -> None:
        """Stop the program, in a debug build, where an index names no element."""
        self.asserts = True
        self.add(f'tl.device_assert({holds}, "an index names no element"{f", mask={mask}" if mask else ""})')

    @property
    def source(self) -> str:
        body = "\n".join(f"    {line}" for line in self.lines or ["pass"])
        return f"def {self.name}({', '.join(self.tensors)}):\n{body}\n"

    @property
    def name(self) -> str:
        return f"onnx_{self.node.name}"

    @property
    def warps(self) -> int:
        """About four elements of the largest tile a lane, and at most four warps."""
        return next((warps for warps in (1, 2) if self.elements <= 256 * warps), 4)

    @property
    def keywords(self) -> dict[str, Any]:
        """How it is launched in a model."""
        return {"num_warps": self.warps, **({"debug": True} if self.asserts else {})}

    def kernel(self) -> JITFunction:
        names: dict[str, Any] = dict(_NAMES)
        exec(compile(self.source, f"<onnx {self.node.name}>", "exec"), names)
        return jit(source=self.source)(names[self.name])

    def outputs(self) -> tuple[str, ...]:
        """The parameters of the node's outputs, in their order."""
        written = {id(tensor) for tensor in self.node.outputs if tensor is not None}
        return tuple(name for name, tensor in self.tensors.items() if id(tensor) in written)


def _masked(offset: str, mask: str) -> str:
    """An access's mask; a place that is not a tile takes none: one element for all."""
    return f", mask={mask}" if mask and any(c.isalpha() for c in offset) else ""


def cover(text: KernelText, elements: int, most: int = 256) -> None:
    """Write `index` and `inside` of a grid that numbers `elements` elements; a program has at most `most` of them."""
    block = min(most, next_power_of_2(elements))
    text.grid = (max(1, ceil_div(elements, block)), 1, 1)
    text.elements = max(text.elements, block)
    text.add(f"index = tl.program_id(0) * {block} + tl.arange(0, {block})", f"inside = index < {elements}")
