"""Kernels of one elementwise row each, their random inputs, and their run on the simulator against the reference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from chips_here import OLDEST

from tilefw.api import Artifact, BufferView, CompileOptions, LaunchOptions
from tilefw.api.dtypes import DTYPES, DType
from tilefw.api.ir import ROWS, ElementwiseRow, context, parse
from tilefw.tile import numbers
from tilefw.tile.reference.accuracy import Comparison, compare
from tilefw.tile.reference.interpret import RefMemory, run
from tilefw_nvidia.backend import NvidiaBackend
from tilefw_nvidia.chips import Chip
from tilefw_nvidia.chips.targets import target

SIZE = 1024
BY_IR: dict[str, DType] = {d.ir: d for d in DTYPES.values() if d.kind != "uint" or d.bits == 1}
INTEGERS = ("i1", "i4", "i8", "i16", "i32", "i64")
FLOATS = tuple(name for name, d in BY_IR.items() if d.is_float)


@dataclass(frozen=True)
class RowCase:
    """One row at one combination of types; `rounding` is a cast's keyword."""

    row: str
    operands: tuple[str, ...]
    result: str
    rounding: str = ""

    def __str__(self) -> str:
        return "-".join((self.row + self.rounding, *self.operands, self.result))


def cases() -> Iterator[RowCase]:
    """Every row at every type that it takes, casts at every pair."""
    for name, row in ROWS.items():
        kind = row.operands[row.typed_by]
        sources = {"T:int": INTEGERS, "T:float": FLOATS, "T:any": INTEGERS + FLOATS}.get(kind, ())
        for source in sources:
            operands = tuple("i1" if o == "bool" else source for o in row.operands)
            for result in _results(name, row, source):
                yield RowCase(name, operands, result)
                if row.rounding and BY_IR[result].bits < BY_IR[source].bits:
                    yield RowCase(name, operands, result, "rtz")


def _results(name: str, row: ElementwiseRow, source: str) -> tuple[str, ...]:
    if row.result == "same":
        return (source,)
    if row.result == "bool":
        return ("i1",)
    bits = BY_IR[source].bits
    if name in ("exts", "extu", "trunci"):
        wider = name != "trunci"
        return tuple(t for t in INTEGERS if t != source and (BY_IR[t].bits > bits) == wider)
    if row.result == "to:int":  # conversions to i1 are compares by contract
        return tuple(t for t in INTEGERS if t != "i1")
    if row.result == "to:float":
        return tuple(t for t in FLOATS if t != source)
    return tuple(t for t in INTEGERS + FLOATS if t != source and BY_IR[t].bits == bits and bits >= 8) if name == "bitcast" else ()


def kernel(case: RowCase, size: int = SIZE) -> str:
    """Tile IR that loads the operands, applies the row and stores the result."""
    row = ROWS[case.row]
    names = [*(f"a{i}" for i in range(len(case.operands))), "out"]
    types = [*case.operands, case.result]
    arguments = ", ".join(
        f'%{n}: !tile.ptr<{t}> {{tile.name = "{n}", tile.divisible = 16 : i64}}' for n, t in zip(names, types, strict=True)
    )
    lines = [f"func.func @row({arguments}) {{", "%zero = tile.constant 0 : i32", "%one = tile.constant 1 : i32"]
    where = "at (%zero : i32) strides (%one : i32)"
    for i, t in enumerate(case.operands):
        lines.append(f"%v{i} = tile.load_block %a{i} {where} : !tile.ptr<{t}>, tensor<{size}x{t}>")
    operands = ", ".join(f"%v{i}" for i in range(len(case.operands)))
    rounding = f" {case.rounding}" if case.rounding else ""
    typed = f"tensor<{size}x{case.operands[row.typed_by]}>"
    cast = f" to tensor<{size}x{case.result}>" if row.is_cast else ""
    lines.append(f"%r = tile.{case.row} {operands}{rounding} : {typed}{cast}")
    lines.append(f"tile.store_block %out, %r {where} : !tile.ptr<{case.result}>, tensor<{size}x{case.result}>")
    return "\n".join([*lines, "func.return", "}"])


def compile_text(text: str, chip: Chip = OLDEST, **options: object) -> Artifact:
    """Tile IR to PTX, without assembling."""
    backend, chosen = NvidiaBackend(target(chip)), CompileOptions(**options)  # type: ignore[arg-type]
    module, ctx = parse(text), context()
    for step in backend.pipeline(chosen):
        step.apply(ctx, module)
    return backend.emit(module, chosen)


def draw(case: RowCase, index: int, rng: np.random.Generator) -> np.ndarray:
    """Codes of operand `index`: random bits, small values and the row's special ones."""
    name = case.operands[index]
    dtype = BY_IR[name]
    storage = numbers._UNSIGNED[dtype.storage_bits]
    codes = (rng.integers(0, 2**64, SIZE, np.uint64) >> np.uint64(64 - dtype.bits)).astype(storage)
    half = SIZE // 2
    ranges = ROWS[case.row].draw.ranges
    special = ROWS[case.row].draw.special
    if dtype.is_float:
        low, high = (ranges[index % len(ranges)] if ranges else None) or (-8.0, 8.0)
        with np.errstate(over="ignore"):
            codes[:half] = numbers.encode(numbers.round_to(rng.uniform(low, high, half), dtype), dtype)
            values = numbers.encode(numbers.round_to(np.array(special), dtype), dtype)
        codes[rng.integers(0, half, 4 * len(values))] = np.resize(values, 4 * len(values))
        codes[half - 16 : half] = rng.choice(values, 16)
    elif dtype.bits > 1:
        edges = [0, 1, 2, 3, (1 << dtype.bits) - 1, 1 << (dtype.bits - 1), (1 << (dtype.bits - 1)) - 1, dtype.bits, dtype.bits - 1]
        codes[:half] = rng.choice(np.array(edges, np.uint64), half).astype(storage)
        if case.row in ("divs", "divu", "rems", "remu") and index == 1:
            codes[codes == 0] = 3  # division by zero has no defined result
    return codes


def check(case: RowCase, chip: Chip = OLDEST, seed: int = 0, code: Artifact | None = None) -> Comparison:
    """Run on the simulator with every check on, and compare with the reference interpreter; `code` is the case's for the chip."""
    rng = np.random.default_rng(seed)
    inputs = [draw(case, i, rng) for i in range(len(case.operands))]
    dtype = BY_IR[case.result]
    text = kernel(case)
    device = NvidiaBackend(target(chip)).simulator()
    memory = RefMemory()
    arguments, buffers = [], []
    nbytes = SIZE * dtype.storage_bits // 8
    for codes in inputs:
        handle = device.allocate(codes.nbytes)
        device.write(handle, codes)
        arguments.append(BufferView(handle))
        buffers.append(memory.allocate(codes.nbytes))
        buffers[-1].write_bytes(codes.tobytes())
    out = device.allocate(nbytes)
    code = code or compile_text(text, chip)
    report = device.launch(device.load(code), "row", (1, 1, 1), [*arguments, BufferView(out)], LaunchOptions())
    assert not report.errors, [f.message for f in report.errors]
    expected = memory.allocate(nbytes)
    run(text, "row", (1,), [*buffers, expected], memory=memory)
    codes = np.frombuffer(device.read(out, nbytes), numbers._UNSIGNED[dtype.storage_bits])
    actual = numbers.decode(codes, dtype) if dtype.is_float else codes
    if dtype.name == "int4":  # four bits in a byte whose others are of no interest
        actual = ((codes << 4).astype(np.int8) >> 4).astype(np.int8)
    return compare(actual, expected.read_reference(dtype))
