"""Four bytes or two halves of a register at once (PTX ISA, "Video Instructions"), on all elements in their order.

Selectors (`%r1.b7610`) and masks (`%r0.b10`), which pick and place single elements, are not served; nor are the scalar forms.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tilefw_nvidia.isa.model import Chapter, Facts, Modifiers

CHAPTER = Chapter()
form = CHAPTER.form

Operation = Callable[[Any, Any, Any], Any]
TYPES = "u32 s32"
_ELEMENT_BITS = {"2": 16, "4": 8}


def _average(lanes: Any, a: Any, b: Any) -> Any:
    """Rounded away from zero."""
    total = lanes.add(a, b)
    negative = lanes.compare(total, lanes.const(0, 32), "lt", True)
    up = lanes.select(negative, lanes.const(0, 32), lanes.const(1, 32))
    return lanes.shr(lanes.add(total, up), lanes.const(1, 32), True)


# What each does with two elements that are extended to 32 bits.
OPERATIONS: dict[str, Operation] = {
    "vadd": lambda lanes, a, b: lanes.add(a, b),
    "vsub": lambda lanes, a, b: lanes.sub(a, b),
    "vavrg": _average,
    "vabsdiff": lambda lanes, a, b: lanes.abs(lanes.sub(a, b)),
    "vmin": lambda lanes, a, b: lanes.min(a, b, True),
    "vmax": lambda lanes, a, b: lanes.max(a, b, True),
}


def _elements(lanes: Any, a: Any, bits: int, signed: bool) -> list[Any]:
    extend = lanes.sign_extend if signed else lanes.zero_extend
    return [extend(part, 32) for part in lanes.split(a, bits)]


def _saturated(lanes: Any, value: Any, bits: int, signed: bool) -> Any:
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    least, most = lanes.const(low % (1 << 32), 32), lanes.const(high, 32)
    return lanes.min(lanes.max(value, least, True), most, True)


def _merged(lanes: Any, results: list[Any], c: Any, bits: int, add: bool) -> Any:
    """With .add c plus all elements, else the elements side by side; no mask leaves any of c's in their place."""
    if not add:
        return lanes.join([lanes.truncate(result, bits) for result in results])
    for result in results:
        c = lanes.add(c, result)
    return c


def _pairs(lanes: Any, m: Modifiers, a: Any, b: Any, bits: int) -> list[tuple[Any, Any]]:
    parts = (_elements(lanes, x, bits, kind == "s32") for x, kind in ((a, m.atype), (b, m.btype)))
    return list(zip(*parts, strict=True))


def _elementwise(operation: Operation, bits: int, m: Modifiers) -> Callable[..., Any]:
    """d = the operation on each two elements of a and b; with .add, c plus their sum."""

    def meaning(lanes: Any, a: Any, b: Any, c: Any) -> Any:
        results = [operation(lanes, x, y) for x, y in _pairs(lanes, m, a, b, bits)]
        if m.sat:
            results = [_saturated(lanes, result, bits, m.dtype == "s32") for result in results]
        return _merged(lanes, results, c, bits, bool(m.add))

    return meaning


def _compared(bits: int, m: Modifiers) -> Callable[..., Any]:
    """d = 1 or 0 for each two elements of a and b; with .add, c plus how many compare so."""

    def meaning(lanes: Any, a: Any, b: Any, c: Any) -> Any:
        found = [lanes.compare(x, y, m.cmp, True) for x, y in _pairs(lanes, m, a, b, bits)]
        results = [lanes.select(p, lanes.const(1, 32), lanes.const(0, 32)) for p in found]
        return _merged(lanes, results, c, bits, bool(m.add))

    return meaning


for _count, _bits in _ELEMENT_BITS.items():
    _facts: Facts = dict(unit="alu", section="Video Instructions: SIMD", ptx="3.0", since=30, atype=TYPES, btype=TYPES)
    for _name, _operation in OPERATIONS.items():
        _build = partial(_elementwise, _operation, _bits)
        form(f"{_name}{_count}.dtype.atype.btype{{.sat}} d:b32, a:b32, b:b32, c:b32", dtype=TYPES, **_facts)(_build)
        form(f"{_name}{_count}.dtype.atype.btype.add d:b32, a:b32, b:b32, c:b32", dtype=TYPES, **_facts)(_build)
    form(f"vset{_count}.atype.btype.cmp{{.add}} d:b32, a:b32, b:b32, c:b32", cmp="eq ne lt le gt ge", **_facts)(
        partial(_compared, _bits)
    )
