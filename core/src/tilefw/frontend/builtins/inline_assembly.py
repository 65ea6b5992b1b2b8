"""inline_asm_elementwise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tilefw.language as tl
from tilefw.api.errors import CompileError
from tilefw.frontend.arithmetic import together
from tilefw.frontend.builder import Builder
from tilefw.frontend.builtins.registry import Meanings
from tilefw.frontend.casts import to_value
from tilefw.frontend.semantics import checked_flag, not_constexpr
from tilefw.frontend.values import RuntimeValue, describe, lowered, tile_type
from tilefw.tile.dialect.asm_constraints import AsmConstraints, parse_constraints, register_count
from tilefw.tile.dialect.inline_asm_op import element_bits

meaning = Meanings()
_NAME = "tl.inline_asm_elementwise"


@meaning("inline_asm_elementwise")
def inline_asm_elementwise(
    b: Builder, asm: Any, constraints: Any, args: Any, dtype: Any, is_pure: Any, pack: Any
) -> RuntimeValue | tuple[RuntimeValue, ...]:
    pure = checked_flag(is_pure, "is_pure")
    for what, text in (("asm", asm), ("constraints", constraints)):
        if not isinstance(text, str):
            raise CompileError(f"{what} of {_NAME} is a string, not {describe(text)}", "TFW0201")
    if isinstance(pack, RuntimeValue):
        raise not_constexpr("pack")
    if not isinstance(pack, int) or isinstance(pack, bool) or pack < 1 or pack & (pack - 1):
        raise CompileError(f"pack is a power of two, not {describe(pack)}", "TFW0203")
    values = together(b, [to_value(b, value) for value in (args if isinstance(args, tuple) else (args,))])
    elements = dtype if isinstance(dtype, tuple) else (dtype,)
    _check_types(values, elements)
    types = [tile_type(element, values[0].shape if values else ()) for element in elements]
    _check_registers(_parsed(constraints), constraints, values, types, pack)
    results = b.inline_asm(asm, constraints, pack, values, types, pure)
    return tuple(results) if isinstance(dtype, tuple) else results[0]


def _check_types(values: Sequence[RuntimeValue], elements: Sequence[Any]) -> None:
    if not elements or not all(isinstance(element, tl.dtype) for element in elements):
        raise CompileError(f"dtype of {_NAME} is an element type or a tuple of them, not {describe(tuple(elements))}", "TFW0205")
    if any(element.is_bool() for element in (*(value.dtype for value in values), *elements)):
        raise CompileError(f"an int1 stands in no register of {_NAME}", "TFW0205", help="convert it: `x.to(tl.int32)`, `y != 0`")


def _parsed(constraints: str) -> AsmConstraints:
    try:
        return parse_constraints(constraints)
    except ValueError as error:
        raise CompileError(f"of the constraints {constraints!r}, {error}", "TFW0212", help='they read like "=r,r,r"') from None


def _check_registers(
    known: AsmConstraints, constraints: str, values: Sequence[RuntimeValue], results: Sequence[tl.dtype], pack: int
) -> None:
    wanted = [
        sum(register_count(element_bits(type), pack) for type in types)
        for types in ((lowered(type) for type in results), (value.ssa.type for value in values))
    ]
    given = [len(known.results), len(known.operands)]
    if wanted != given:
        raise CompileError(
            f"the results and operands of {_NAME} take {wanted[0]} and {wanted[1]} registers with pack={pack}, "
            f"but the constraints {constraints!r} name {given[0]} and {given[1]}", "TFW0212",
            note="elements of less than 32 bits stand together in a register of 32 bits, as many as pack allows",
        )
