"""Matrix instructions in the lane interpreter: products of fragments, and those under way that a unit makes by itself.

Such a unit reads shared memory by the addresses that the waves of an atom agree on, as the form of the operand says. Until the wait
its result is unknown, and those bytes may not be written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.scf import YieldOp
from xdsl.ir import Operation, SSAValue

from tilefw.api.dtypes import DTYPES, DType
from tilefw.api.integers import log2
from tilefw.simt import lane
from tilefw.simt.description import LaneMachine, MatrixAtom, SharedForm
from tilefw.simt.layout import atoms
from tilefw.testing.lane_memory import LaneFault, LaneSharedMemory
from tilefw.tile import numbers, types
from tilefw.tile.reference.value import Array


@dataclass(slots=True)
class _LaneProduct:
    """`unknown` stands for the result until the wait, which writes it there."""

    unknown: Array
    result: Array
    read: list[Array]


class ProductsUnderWay:
    """One workgroup's, oldest first."""

    def __init__(self, machine: LaneMachine, shared: LaneSharedMemory) -> None:
        self.machine = machine
        self.shared = shared
        self.products: list[_LaneProduct] = []

    def check(self, op: Operation, values: Mapping[SSAValue, Array]) -> None:
        """That an op reads no result before its wait: a product may add to it, and a loop hand it on."""
        if not self.products or isinstance(op, YieldOp | lane.AtomWaitOp):
            return
        for value in op.operands:
            added_to = isinstance(op, lane.AsyncAtomOp) and value is op.acc
            if not added_to and any(values.get(value) is product.unknown for product in self.products):
                raise LaneFault(f"a product's result is read before the wait for it, in {op}")

    def begin(self, op: lane.AsyncAtomOp, given: Mapping[str, Array], acc: Array) -> Array:
        """Start a product of fragments and of what stands at addresses; gives what stands for its result."""
        atom = atoms.find_atom(self.machine.chip, op.atom)
        under_way = next((product for product in self.products if np.may_share_memory(acc, product.unknown)), None)
        result = np.array(acc if under_way is None else under_way.result)
        read: list[Array] = []
        for j, d in enumerate(op.numbers("d")):
            left, right = (self.factor(op, atom, side, j, given, read) for side in op.SIDES)
            add_product(atom, self.lanes, left, right, result, d)
        unknown = np.full_like(result, np.nan if result.dtype.kind == "f" else 0x5A5A5A5A)
        self.products.append(_LaneProduct(unknown, result, read))
        return unknown

    @property
    def lanes(self) -> int:
        return self.machine.lanes

    def factor(
        self, op: lane.AsyncAtomOp, atom: MatrixAtom, side: str, j: int, given: Mapping[str, Array], read: list[Array]
    ) -> Array:
        """An operand of repeat `j` for each group of waves that work together."""
        layout = atom.a_layout if side == "a" else atom.b_layout
        first, threads = op.numbers(side)[j], self.lanes * atom.waves
        if side in given:
            return taken(gathered(given[side], first, layout, threads, atom), atom)
        forms = atom.a_forms if side == "a" else atom.b_forms
        addresses = given[f"{side}_address"][:, op.numbers(f"{side}_slots")[j]].astype(np.int64) + first
        grouped = addresses.reshape(-1, threads)
        if (grouped != grouped[:, :1]).any():
            raise LaneFault(f"waves that work together differ in the address of {side}")
        element = next(dtype for dtype in DTYPES.values() if dtype.ir == (atom.a if side == "a" else atom.b))
        places = form_places(forms[op.number(f"{side}_form")], op.number(f"{side}_stride"), side, atom, element.storage_bits // 8)
        found = []
        for start, first_wave in zip(grouped[:, 0], range(0, self.machine.waves, atom.waves), strict=True):
            at, size = swizzled(places + start, forms[op.number(f"{side}_form")]), element.storage_bits // 8
            waves = range(first_wave, first_wave + atom.waves)
            seen = [self.shared.read(at.reshape(-1), size, np.full(at.size, wave)) for wave in waves]
            raw = seen[-1]
            self.shared.engage(at, size)
            read.append(at.reshape(-1)[:, None] + np.arange(size))
            found.append(numbers.from_bytes(raw.reshape(-1), element).reshape(at.shape))
        return taken(np.stack(found), atom)

    def wait(self, pending: int) -> None:
        while len(self.products) > pending:
            product = self.products.pop(0)
            product.unknown[...] = product.result
            for at in product.read:
                self.shared.disengage(at)

    def finish(self) -> None:
        if self.products:
            raise LaneFault("the kernel ends while products are under way")


def form_places(form: SharedForm, stride: int, side: str, atom: MatrixAtom, size: int) -> Array:
    """Where the elements of an atom's operand stand from its first one on, before pieces are exchanged."""
    shape = (atom.m, atom.k) if side == "a" else (atom.k, atom.n)
    rows, columns = np.indices(shape)
    along, across = (columns, rows) if form.along_k == (side == "a") else (rows, columns)
    within, row = along * size, across
    return (
        row // form.rows * form.pattern_bytes + row % form.rows * form.row_bytes
        + within // form.row_bytes * stride + within % form.row_bytes
    )


def swizzled(addresses: Array, form: SharedForm) -> Array:
    """The addresses with the pieces of each row exchanged by the row's place in the pattern."""
    pieces = form.row_bytes - form.piece_bytes if form.row_bytes > form.piece_bytes else 0
    return addresses ^ (addresses >> log2(form.rows) & pieces)


def gathered(fragments: Array, first: int, layout: Any, threads: int, atom: MatrixAtom) -> Array:
    """The matrix of which every group of so many threads holds fragments, from element `first` on."""
    groups = len(fragments) // threads
    matrix = np.zeros((groups, int(np.prod(layout.shape))), np.float64 if atom.d[0] != "i" else np.int64)
    grouped = fragments.reshape(groups, threads, -1)
    matrix[:, _elements(layout, threads)] = grouped[:, :, first : first + layout.registers]
    return matrix.reshape(groups, *layout.shape)


def add_product(atom: MatrixAtom, lanes: int, left: Array, right: Array, d: Array, first: int) -> None:
    """d += left · right, for every group of waves, on fragments of `d` from element `first` on."""
    threads = lanes * atom.waves
    groups = len(d) // threads
    total = gathered(d, first, atom.d_layout, threads, atom) + left @ right
    dtype = next(t for t in _result_types() if t.ir == atom.d)
    rounded = numbers.round_to(total, dtype) if dtype.is_float else numbers.wrap(total, dtype.bits)
    flat = rounded.reshape(groups, -1)[:, _elements(atom.d_layout, threads)]
    d[:, first : first + atom.d_layout.registers] = flat.reshape(len(d), -1)


def multiply(atom: MatrixAtom, lanes: int, operands: Sequence[Array], d: Array, firsts: Sequence[int]) -> None:
    """One matrix instruction of every group of waves, on fragments of a, b and maybe their scales that begin at these elements
    (the third is that of `d`, which is updated)."""
    threads = lanes * atom.waves
    left, right = (
        taken(gathered(v, f, l, threads, atom), atom)
        for v, f, l in zip(operands, firsts, (atom.a_layout, atom.b_layout), strict=False)
    )
    if atom.scales is not None:
        left, right = _elements_of(left, atom.a, 2), _elements_of(right, atom.b, 1)
        lie = (atom.scales.a_layout, atom.scales.b_layout)
        factors = [gathered(v, f, l, threads, atom) for v, f, l in zip(operands[2:], firsts[3:], lie, strict=True)]
        of_a, of_b = (np.repeat(np.ldexp(1.0, codes.astype(np.int64) % 256 - 127), atom.scales.group, 2) for codes in factors)
        left, right = left * of_a, right * of_b.swapaxes(1, 2)
    add_product(atom, lanes, left, right, d, firsts[2])


def _elements_of(matrix: Array, element: str, k: int) -> Array:
    """The elements of an operand along axis `k`; of e2m1, two of each byte."""
    if element != DTYPES["fp4e2m1"].ir:
        return matrix
    codes = np.moveaxis(matrix.astype(np.int64) % 256, k, -1)
    both = np.stack([codes & 15, codes >> 4], axis=-1).reshape(*codes.shape[:-1], -1)
    return np.moveaxis(numbers.decode(both.astype(np.uint8), DTYPES["fp4e2m1"]), -1, k)


def _result_types() -> list[DType]:
    return [types.dtype_of(t) for t in (types.f16, types.f32, types.f64, types.i32)]


def _elements(layout: Any, threads: int) -> Array:
    return np.array([[layout.element(r, t) for r in range(layout.registers)] for t in range(threads)])


def taken(matrix: Array, atom: MatrixAtom) -> Array:
    """Operands as the instruction takes them."""
    if atom.unsigned:
        return matrix & 0xFF
    if atom.precision != "tf32":
        return matrix
    bits = matrix.astype(np.float32).view(np.uint32)
    return (bits & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)  # 10 bits of mantissa
