"""Declarations: registers, variables in state spaces, parameters (PTX ISA, "State Spaces, Types, and Variables")."""

from __future__ import annotations

import struct

from tilefw.api.integers import round_up
from tilefw_nvidia.isa.text.cursor import Cursor, integer
from tilefw_nvidia.isa.text.source import NAMES, NOT_SERVED
from tilefw_nvidia.isa.text.syntax import PtxParameter, PtxScope, PtxVariable, Space
from tilefw_nvidia.isa.types import DECLARABLE, TYPES, Type

SPACES: dict[str, Space] = {".global": "global", ".const": "const", ".shared": "shared", ".local": "local"}
# Far more than any device has; it keeps a damaged file from asking for absurd amounts.
MAX_BYTES = 1 << 32
MAX_REGISTERS = 1 << 20
MAX_PARAMETER_BYTES = 32764  # PTX ISA, "Kernel Function Parameters", from .version 8.1


def read_type(cursor: Cursor, expected: str = "a type") -> Type:
    word = cursor.word(expected)
    kind = TYPES.get(word[1:])
    if not word.startswith(".") or kind is None or kind.name not in DECLARABLE:
        served = word in (".texref", ".samplerref", ".surfref", ".f16x4")
        cursor.fail(f"{word!r} is not a type{' that is served' if served else ''}", code=NOT_SERVED if served else "TFW0710")
    return kind


def read_registers(cursor: Cursor, scope: PtxScope) -> None:
    """What follows `.reg`: `.b32 %r<12>, %tmp;`."""
    vector = int(cursor.peek()[2:]) if cursor.peek() in (".v2", ".v4") else 0
    if vector:
        cursor.any("a vector width")
        cursor.fail("vector registers are not served; declare scalar ones", code=NOT_SERVED)
    kind = read_type(cursor, "a register type")
    while True:
        name = cursor.name("a register name")
        if cursor.accept("<"):
            _add(cursor, scope.counts, name, (cursor.integer("a register count", 0, MAX_REGISTERS), kind))
            cursor.expect(">")
        else:
            _add(cursor, scope.registers, name, kind)
        if cursor.accept(";"):
            return
        cursor.expect(",")


def _add(cursor: Cursor, names: dict, name: str, value: object) -> None:
    if name in names:
        cursor.fail(f"{name} is declared twice in one scope", code=NAMES)
    names[name] = value


def read_variable(cursor: Cursor, space: Space, extern: bool = False) -> list[PtxVariable]:
    """What follows the space: `.align 16 .b8 name[256] = {…};`."""
    alignment = 0
    while cursor.peek() in (".align", ".attribute"):
        if cursor.word("") == ".attribute":
            cursor.fail("variable attributes are not served", code=NOT_SERVED)
        alignment = _alignment(cursor)
    vector = int(cursor.any("")[2:]) if cursor.peek() in (".v2", ".v4") else 1
    kind = read_type(cursor)
    if kind.kind == "predicate":
        cursor.fail("a variable cannot be a predicate")
    width = kind.bits // 8
    alignment = alignment or width * vector
    variables: list[PtxVariable] = []
    while True:
        name = cursor.name("a variable name")
        start = cursor.start
        elements = _extent(cursor)
        data = _initial(cursor, kind, elements) if cursor.accept("=") else None
        if elements is None:
            if data is None and not extern:
                cursor.fail(f"the size of {name} is missing; only .extern arrays and initialised ones go without")
            elements = len(data) // width if data is not None else 0
        size = elements * width * vector
        if size > MAX_BYTES:
            cursor.fail(f"{name} has {size} bytes; at most {MAX_BYTES} are possible")
        variables.append(PtxVariable(name, space, kind, size, alignment, extern, _padded(data, size), start))
        if cursor.accept(";"):
            return variables
        cursor.expect(",")


def _padded(data: bytes | None, size: int) -> bytes | None:
    return None if data is None else data.ljust(size, b"\0")


def _alignment(cursor: Cursor) -> int:
    alignment = cursor.integer("an alignment", 1, 1 << 20)
    if alignment & (alignment - 1):
        cursor.fail(f"an alignment must be a power of two, not {alignment}")
    return alignment


def _extent(cursor: Cursor) -> int | None:
    """`[4][8]` as 32, `[]` as None, nothing as 1."""
    total: int | None = 1
    while cursor.accept("["):
        if cursor.accept("]"):
            total = None
            continue
        extent = cursor.integer("an array extent", 0, MAX_BYTES)
        total = None if total is None else total * extent
        cursor.expect("]")
    return total


def _initial(cursor: Cursor, kind: Type, elements: int | None) -> bytes:
    values: list[bytes] = []
    depth = 0
    while True:
        if cursor.accept("{"):
            depth += 1
            continue
        values.append(_encode(cursor, kind, cursor.any("an initial value")))
        while depth and cursor.accept("}"):
            depth -= 1
        if not depth:
            break
        cursor.expect(",")
    if elements is not None and len(values) > elements:
        cursor.fail(f"{len(values)} initial values for {elements} elements")
    return b"".join(values)


def _encode(cursor: Cursor, kind: Type, text: str) -> bytes:
    if text == "-":
        text += cursor.any("a number")
    try:
        if text[:2].lower() in ("0f", "0d"):
            raw = int(text[2:], 16)
            value = struct.unpack("<f" if text[1] in "fF" else "<d", raw.to_bytes(4 if text[1] in "fF" else 8, "little"))[0]
            return _float_bytes(kind, value)
        if "." in text:
            return _float_bytes(kind, float(text))
        value = integer(text)
    except (ValueError, KeyError, OverflowError, struct.error):
        what = (
            "addresses of variables as initial values are not served"
            if text[0].isalpha()
            else f"{text!r} is not a value of .{kind.name}"
        )
        cursor.fail(what, code=NOT_SERVED if text[0].isalpha() else "TFW0710")
    return (value % (1 << kind.bits)).to_bytes(kind.bits // 8, "little")


def _float_bytes(kind: Type, value: float) -> bytes:
    return struct.pack({"f16": "<e", "f32": "<f", "f64": "<d", "b32": "<f", "b64": "<d"}[kind.name], value)


def read_parameters(cursor: Cursor) -> tuple[PtxParameter, ...]:
    """What follows a function's name: `( .param .u64 .ptr .global .align 16 x, .param .b8 y[128] )`."""
    parameters: list[PtxParameter] = []
    offset = 0
    if not cursor.accept("(") or cursor.accept(")"):
        return ()
    while True:
        if cursor.peek() == ".reg":
            cursor.word("a parameter")
            cursor.fail("parameters in registers are not served; those in .param space are", code=NOT_SERVED)
        cursor.expect(".param")
        parameter = _parameter(cursor, offset)
        if any(p.name == parameter.name for p in parameters):
            cursor.fail(f"parameter {parameter.name} is declared twice", code=NAMES)
        offset = parameter.offset + parameter.size
        if offset > MAX_PARAMETER_BYTES:
            cursor.fail(f"parameters take {offset} bytes; at most {MAX_PARAMETER_BYTES} are possible")
        parameters.append(parameter)
        if cursor.accept(")"):
            return tuple(parameters)
        cursor.expect(",")


def _parameter(cursor: Cursor, offset: int) -> PtxParameter:
    alignment = _alignment(cursor) if cursor.accept(".align") else 0
    kind = read_type(cursor)
    pointer, space, pointee = False, "", 0
    while cursor.peek().startswith("."):
        word = cursor.word("a parameter attribute")
        if word == ".ptr":
            pointer = True
        elif pointer and (word in SPACES or word == ".param"):
            space = word[1:]
        elif pointer and word == ".align":
            pointee = _alignment(cursor)
        else:
            cursor.fail(f"{word!r} is not allowed in a parameter")
    name = cursor.name("a parameter name")
    elements = _extent(cursor)
    if elements is None:
        cursor.fail("a parameter array needs its size")
    alignment = alignment or kind.bits // 8 or 1
    offset = round_up(offset, alignment)
    return PtxParameter(name, kind, elements * kind.bits // 8, alignment, offset, pointer, space, pointee)
