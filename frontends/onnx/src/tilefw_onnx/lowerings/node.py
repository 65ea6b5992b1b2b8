"""One node of ONNX: its operator with all attributes, its inputs and outputs with shapes, element types, and values where known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto

from tilefw.api.errors import UnsupportedError

# ONNX's element types (onnx.proto, TensorProto.DataType) by the names that tilefw has for the same formats. E8M0 is not an element
# type of the language: its codes are handled as the bytes that they are.
ELEMENT_TYPES: Mapping[str, str] = {
    "FLOAT": "fp32", "FLOAT16": "fp16", "BFLOAT16": "bf16", "DOUBLE": "fp64",
    "FLOAT8E4M3FN": "fp8e4nv", "FLOAT8E5M2": "fp8e5", "FLOAT8E4M3FNUZ": "fp8e4b8", "FLOAT8E5M2FNUZ": "fp8e5b16",
    "FLOAT4E2M1": "fp4e2m1", "FLOAT8E8M0": "uint8",
    "BOOL": "int1", "INT4": "int4", "UINT4": "uint4", "INT8": "int8", "UINT8": "uint8", "INT16": "int16", "UINT16": "uint16",
    "INT32": "int32", "UINT32": "uint32", "INT64": "int64", "UINT64": "uint64",
}
UNSIGNED_EXPONENT = "FLOAT8E8M0"


@dataclass(frozen=True, slots=True)
class NodeTensor:
    """One input or output: its name, ONNX's name of its element type, its shape; its values where they are known before
    the kernel runs."""

    name: str
    onnx_type: str
    shape: tuple[int, ...]
    array: np.ndarray | None = None

    @property
    def dtype(self) -> str:
        """Triton's name of the element type."""
        return ELEMENT_TYPES[self.onnx_type]

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def values(self) -> np.ndarray:
        """Its values. Raises UnsupportedError TFW0992 where only a run knows them."""
        if self.array is None:
            note = f"{self.name} says what is computed, and it is not a constant of the model"
            raise UnsupportedError("an operation that a run describes", code="TFW0992", note=note)
        return self.array

    def integers(self) -> tuple[int, ...]:
        """Its values, for an input that only describes the operation: axes, a shape, starts of slices."""
        return tuple(int(value) for value in self.values.reshape(-1))


@dataclass(frozen=True, slots=True)
class Node:
    """A node. An optional input or output that it leaves out is None."""

    name: str
    operator: str
    attributes: Mapping[str, Any]
    inputs: tuple[NodeTensor | None, ...]
    outputs: tuple[NodeTensor | None, ...]

    def input(self, index: int) -> NodeTensor:
        """A required input."""
        tensor = self.inputs[index]
        assert tensor is not None, f"{self.name} has no input {index}"
        return tensor

    def optional(self, index: int) -> NodeTensor | None:
        return self.inputs[index] if index < len(self.inputs) else None

    def output(self, index: int) -> NodeTensor:
        """A required output."""
        tensor = self.outputs[index]
        assert tensor is not None, f"{self.name} has no output {index}"
        return tensor

    def optional_output(self, index: int) -> NodeTensor | None:
        return self.outputs[index] if index < len(self.outputs) else None

    def given(self) -> tuple[NodeTensor, ...]:
        """The inputs that are there."""
        return tuple(tensor for tensor in self.inputs if tensor is not None)


def type_name(number: int) -> str:
    """ONNX's name of an element type by its number; of one that ONNX does not have, the number."""
    known = onnx.TensorProto.DataType
    return known.Name(number) if number in known.values() else str(number)


def attributes_of(proto: onnx.NodeProto, opset: int) -> dict[str, Any]:
    """The node's attributes over the defaults of the operator's schema. An attribute that only later versions have stands at their
    default, which leaves older models as they are."""
    latest, own = onnx.defs.get_schema(proto.op_type, proto.domain), onnx.defs.get_schema(proto.op_type, opset, proto.domain)
    defaults = {
        name: one.default_value for schema in (latest, own) for name, one in schema.attributes.items()
        if one.default_value.type != AttributeProto.UNDEFINED
    }
    return {name: _value(one) for name, one in {**defaults, **{a.name: a for a in proto.attribute}}.items()}


def _value(attribute: AttributeProto) -> Any:
    value = onnx.helper.get_attribute_value(attribute)
    return value.decode() if isinstance(value, bytes) else value
