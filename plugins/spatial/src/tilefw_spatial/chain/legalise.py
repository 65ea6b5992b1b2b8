"""Nodes to micro steps: rows that the vector unit has as they are, all others through the expansions."""

from __future__ import annotations

from dataclasses import replace

from tilefw.api import DTYPES, Place, UnsupportedError
from tilefw.api.expand import CASTS, Legal, key
from tilefw_spatial import isa
from tilefw_spatial.chain.contract import contracted
from tilefw_spatial.chain.functions import RULES
from tilefw_spatial.chain.micro import Micro, RegionResult, element_type
from tilefw_spatial.chain.native import NATIVE, Native
from tilefw_spatial.chain.node import Apply, Combined, Input, Literal, Node, Results
from tilefw_spatial.chain.record import Recorder, RecordTerm
from tilefw_spatial.graph import ReductionKind
from tilefw_spatial.postorder import postorder

_CONTRACTIBLE = frozenset({"addf", "subf", "mulf", "addi", "subi", "muli"})

# What combines in time, and on integers with which sign.
_REDUCTIONS: dict[ReductionKind, tuple[str, str]] = {
    ReductionKind.ADDF: ("add", ""), ReductionKind.MULF: ("mul", ""), ReductionKind.MAXF: ("max", ""),
    ReductionKind.MINF: ("min", ""),
    ReductionKind.MAXNUM: ("maxnum", ""), ReductionKind.MINNUM: ("minnum", ""),
    ReductionKind.ADDI: ("add", "int"), ReductionKind.MULI: ("mul", "int"), ReductionKind.MAXS: ("max", "int"),
    ReductionKind.MINS: ("min", "int"),
    ReductionKind.MAXU: ("max", "uint"), ReductionKind.MINU: ("min", "uint"),
    ReductionKind.AND: ("and", "int"), ReductionKind.OR: ("or", "int"), ReductionKind.XOR: ("xor", "int"),
}
# A bit lies in a byte as 0 or 1; read as signed it is 0 or -1, and sums are modulo 2.
_BIT_REDUCTIONS: dict[ReductionKind, str] = {
    ReductionKind.ADDI: "xor", ReductionKind.XOR: "xor", ReductionKind.MULI: "and", ReductionKind.AND: "and",
    ReductionKind.OR: "or",
    ReductionKind.MAXU: "or", ReductionKind.MINU: "and", ReductionKind.MAXS: "and", ReductionKind.MINS: "or",
}


def legalise(results: Results) -> list[RegionResult]:
    """The region's results as micro steps. Raises UnsupportedError (TFW0680) for element types and rows that the vector unit cannot
    compute, at the user's line."""
    recorder = Recorder()
    terms: dict[Node, RecordTerm] = {}
    for node in postorder((result.node for result in results), lambda user: reversed(operands_of(user))):
        terms[node] = _term(recorder, node, [terms[operand] for operand in operands_of(node)])
    found: dict[tuple[Micro, str], RegionResult] = {}
    for result in results:
        micro = _written(recorder, terms[result.node], result.node.dtype)
        name = (micro, result.node.dtype)
        keys = found[name].keys if name in found else ()
        found[name] = RegionResult((*keys, result.key), micro, result.node.dtype)
    return contracted(list(found.values()))


def operands_of(node: Node) -> tuple[Node, ...]:
    """The nodes that a node reads."""
    if isinstance(node, Apply):
        return node.operands
    if isinstance(node, Combined):
        return (node.operand,) if node.initial is None else (node.operand, node.initial)
    return ()


def _term(recorder: Recorder, node: Node, operands: list[RecordTerm]) -> RecordTerm:
    if isinstance(node, Input | Literal):
        return RecordTerm(node, _served(node.dtype, None))
    return _combined(recorder, node, operands) if isinstance(node, Combined) else _applied(recorder, node, operands)


def _applied(recorder: Recorder, node: Apply, operands: list[RecordTerm]) -> RecordTerm:
    to = _served(node.dtype, node.place) if node.row in CASTS else None
    typed_by = operands[1 if node.row == "select" else 0].type
    if to == typed_by:
        return operands[0]
    recorder.contractible = node.fusion and node.row in _CONTRACTIBLE and key(node.row, typed_by) in NATIVE
    try:
        return Legal(recorder, RULES)(node.row, *operands, to=to)
    except UnsupportedError as error:
        spelled = key(node.row, typed_by, to)
        raise UnsupportedError(f"the vector unit has no way to {spelled}", code="TFW0680", place=node.place) from error
    finally:
        recorder.contractible = False


def _combined(recorder: Recorder, node: Combined, operands: list[RecordTerm]) -> RecordTerm:
    dtype = _served(node.dtype, node.place)
    narrow = DTYPES[node.dtype].is_float and dtype != "f32"
    read = [Legal(recorder, RULES)("castf", term, to="f32") if narrow else term for term in operands]
    if node.dtype == "int1":
        reduction, named = _BIT_REDUCTIONS[node.kind], "uint8"
    else:
        reduction, sign = _REDUCTIONS[node.kind]
        named = f"{sign}{DTYPES[node.dtype].bits}" if sign else "fp32"
    made = recorder.step(Native(f"TRED.{reduction}", named), tuple(read), node.every)
    return Legal(recorder, RULES)("castf", RecordTerm(made, "f32"), to=dtype) if narrow else RecordTerm(made, dtype)


def _written(recorder: Recorder, term: RecordTerm, dtype: str) -> Micro:
    """A step whose result can be stored as `dtype`: what is an input or a constant is moved by one."""
    source = recorder.settled(term).source
    if isinstance(source, Micro) and isa.TYPES[element_type(source)].nbytes == isa.TYPES[dtype].nbytes:
        return source
    if isinstance(source, Literal):
        return recorder.placed(Native("CST", dtype), RecordTerm(source, term.type))
    return recorder.placed(Native("MOV", dtype), replace(term, negate=False, absolute=False, source=source))


def _served(dtype: str, place: Place | None) -> str:
    """Tile IR's spelling of an element type that the machine has. Raises UnsupportedError (TFW0680)."""
    if dtype not in isa.TYPES:
        raise UnsupportedError(f"the vector unit has no elements of type {dtype}", code="TFW0680", place=place)
    return DTYPES[dtype].ir

