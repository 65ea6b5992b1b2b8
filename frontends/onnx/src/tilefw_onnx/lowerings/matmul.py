"""Products of matrices by `tl.dot`: MatMul, Gemm and the integer ones; programs are batches and blocks of the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from tilefw.api.dtypes import dtype
from tilefw.api.errors import UnsupportedError
from tilefw.api.integers import ceil_div
from tilefw_onnx.lowerings.node import Node, NodeTensor
from tilefw_onnx.lowerings.places import View, contiguous, next_power_of_2
from tilefw_onnx.lowerings.text import KernelText, clipped, spelled

_BLOCK = 64


@dataclass(frozen=True, slots=True)
class Matrix:
    """An operand as matrices: the view of its batches, its extents, and the strides of its rows and columns."""

    tensor: NodeTensor
    batch: View
    rows: int
    columns: int
    row_stride: int
    column_stride: int

    def transposed(self) -> Matrix:
        return Matrix(self.tensor, self.batch, self.columns, self.rows, self.column_stride, self.row_stride)


def _matrix(tensor: NodeTensor, vector_is_row: bool) -> Matrix:
    """NumPy's rule: a vector is a row on the left and a column on the right; leading axes are batches."""
    if len(tensor.shape) == 1:
        n = tensor.shape[0]
        return Matrix(tensor, View(()), 1, n, 0, 1) if vector_is_row else Matrix(tensor, View(()), n, 1, 1, 0)
    *batches, rows, columns = tensor.shape
    whole = contiguous(tensor.shape)
    return Matrix(tensor, whole.take(range(len(batches))), rows, columns, columns, 1)


def matmul(node: Node) -> KernelText:
    a, b, out = _matrix(node.input(0), True), _matrix(node.input(1), False), node.output(0)
    text = _begin(node, a, b)
    _loop(text, a, b, _accumulator(a))
    return _end(text, a, b, out, f"total.to({spelled(out.dtype)})")


def _accumulator(a: Matrix) -> str:
    """What products of the operand's type are summed in."""
    kind = dtype(a.tensor.dtype)
    return ("tl.float64" if kind.bits == 64 else "tl.float32") if kind.is_float else "tl.int32"


def gemm(node: Node) -> KernelText:
    """alpha · A @ B + beta · C, where A and B may be transposed and C broadcasts."""
    a, b, out = _matrix(node.input(0), True), _matrix(node.input(1), False), node.output(0)
    a = a.transposed() if node.attributes["transA"] else a
    b = b.transposed() if node.attributes["transB"] else b
    text, total, bias = _begin(node, a, b), _accumulator(a), ""
    if (given := node.optional(2)) is not None:
        (_, down), (_, across) = contiguous(given.shape).broadcast(out.shape).dims
        text.add(f"bias = {text.loaded(given, _offset(down, across), 'inside')}.to({total})")
        bias = f"{node.attributes['beta']!r} * bias"
    if node.attributes["alpha"] == 1 and total != "tl.int32":  # a compiler may add the products to the bias: so the bounds must
        _loop(text, a, b, total, begun=bias)
        return _end(text, a, b, out, f"total.to({spelled(out.dtype)})")
    _loop(text, a, b, total)
    value = " + ".join(filter(None, (f"{node.attributes['alpha']!r} * total", bias)))
    return _end(text, a, b, out, f"({value}).to({spelled(out.dtype)})")


def integer(node: Node) -> KernelText:
    """(A - its zero point) @ (B - its zero point), in 32 bits."""
    a, b = _matrix(node.input(0), True), _matrix(node.input(1), False)
    text = _integer_product(node, a, b, node.optional(2), node.optional(3))
    return _end(text, a, b, node.output(0), "total")


def quantized(node: Node) -> KernelText:
    """The integer product times a_scale · b_scale / y_scale, rounded to even, plus y's zero point, saturated.

    The factor is rounded in the scales' own type after each step.
    """
    a, b, out = _matrix(node.input(0), True), _matrix(node.input(3), False), node.output(0)
    text = _integer_product(node, a, b, node.input(2), node.input(5))
    kind = spelled(node.input(1).dtype)
    x, y, z = (f"{text.loaded(_single(node, node.input(i)), '0')}.to(tl.float32)" for i in (1, 4, 6))
    text.add(
        f"factor = tl.div_rn(({x} * {y}).to({kind}).to(tl.float32), {z}).to({kind}).to(tl.float32)",
        f"scaled = libdevice.rint(total.to(tl.float32) * factor + {text.loaded(_single(node, node.input(7)), '0')}.to(tl.float32))",
    )
    return _end(text, a, b, out, f"{clipped('scaled.to(tl.int32)', out.dtype)}.to({spelled(out.dtype)})")


def _single(node: Node, tensor: NodeTensor) -> NodeTensor:
    if tensor.size != 1:
        note = f"{tensor.name} has {tensor.size} values; the kernel takes one for the whole matrix"
        raise UnsupportedError(f"{node.operator} with a scale or zero point of each row or column", code="TFW0992", note=note)
    return tensor


def _integer_product(node: Node, a: Matrix, b: Matrix, zero_a: NodeTensor | None, zero_b: NodeTensor | None) -> KernelText:
    """`total` of bytes less their zero points, without widening them: both are taken off by the sums of rows and columns. tl.dot
    takes operands of one type: beside int8, uint8 is int8 of 128 less, and so is its zero point."""
    mixed = a.tensor.dtype != b.tensor.dtype
    turned = tuple(name for name, one in (("a", a), ("b", b)) if mixed and one.tensor.dtype == "uint8")
    text = _begin(node, a, b)
    text.add("row_sum = tl.zeros_like(row)", "column_sum = tl.zeros_like(column)")
    _loop(text, a, b, "tl.int32", (
        "row_sum += tl.sum(a.to(tl.int32), axis=1, keep_dims=True)", "column_sum += tl.sum(b.to(tl.int32), axis=0, keep_dims=True)",
    ), turned=turned)
    for name, zero in (("a", zero_a), ("b", zero_b)):
        given = "0" if zero is None else f"{text.loaded(_single(node, zero), '0')}.to(tl.int32)"
        text.add(f"zero_{name} = {given}{' - 128' if name in turned else ''}")
    text.add(
        f"total = total - zero_a * column_sum - zero_b * row_sum + {a.columns} * zero_a * zero_b",
    )
    return text


def _begin(node: Node, a: Matrix, b: Matrix) -> KernelText:
    """`batch`, `row` (a column vector), `column` (a row vector) and `inside` of the result's block."""
    height, width = (min(_BLOCK, next_power_of_2(n)) for n in (a.rows, b.columns))
    batches = prod(_batches(a, b))
    text = KernelText(node, grid=(max(1, batches), ceil_div(a.rows, height), ceil_div(b.columns, width)), elements=height * width)
    text.add(
        "batch = tl.program_id(0)",
        f"row = (tl.program_id(1) * {height} + tl.arange(0, {height}))[:, None]",
        f"column = (tl.program_id(2) * {width} + tl.arange(0, {width}))[None, :]",
        f"inside = (row < {a.rows}) & (column < {b.columns})",
    )
    return text


def _loop(
    text: KernelText, a: Matrix, b: Matrix, accumulator: str, more: tuple[str, ...] = (), begun: str = "",
    turned: tuple[str, ...] = (),
) -> None:
    """`total`: the product over steps along the common extent, added to what is `begun`; float32 operands keep all their bits. Of
    operands that are `turned`, uint8, the top bit is, which makes them int8 of 128 less; what is outside is zero then too."""
    step = min(_BLOCK, next_power_of_2(a.columns))
    shape = _batches(a, b)
    places = [matrix.batch.broadcast(shape).offset("batch") for matrix in (a, b)]
    left = f"{places[0]} + {_offset(a.row_stride, a.column_stride, 'row', 'inner[None, :]')}"
    right = f"{places[1]} + {_offset(b.row_stride, b.column_stride, 'inner[:, None]', 'column')}"
    kind = "" if accumulator == "tl.int32" else ', input_precision="ieee"'
    kind += ", out_dtype=tl.float64" if accumulator == "tl.float64" else ""
    outside = {name: "128" if name in turned else "0" for name in ("a", "b")}
    text.add(
        f"total = tl.zeros((row.shape[0], column.shape[1]), {accumulator})", *([f"total += {begun}"] if begun else []),
        f"for start in range(0, {a.columns}, {step}):",
        f"    inner = start + tl.arange(0, {step})",
        f"    a = {text.loaded(a.tensor, left, f'(row < {a.rows}) & (inner[None, :] < {a.columns})', outside['a'])}",
        f"    b = {text.loaded(b.tensor, right, f'(inner[:, None] < {b.rows}) & (column < {b.columns})', outside['b'])}",
        *(f"    {name} = ({name} ^ 128).to(tl.int8, bitcast=True)" for name in turned),
        f"    total = tl.dot(a, b, total{kind})",
        *(f"    {line}" for line in more),
    )


def _end(text: KernelText, a: Matrix, b: Matrix, out: NodeTensor, value: str) -> KernelText:
    place = f"batch * {a.rows * b.columns} + {_offset(b.columns, 1)}"
    text.store(out, place, value, "inside")
    return text


def _offset(down: int, across: int, row: str = "row", column: str = "column") -> str:
    return f"{row} * {down} + {column} * {across}"


def _batches(a: Matrix, b: Matrix) -> tuple[int, ...]:
    return np.broadcast_shapes(*(tuple(extent for extent, _ in matrix.batch.dims) for matrix in (a, b)))


LOWERINGS: Mapping[str, Callable[[Node], KernelText]] = {
    "MatMul": matmul, "Gemm": gemm, "MatMulInteger": integer, "QLinearMatMul": quantized,
}
