"""Which of a shape's modifiers a row has, in which bits: what follows from the operands' types and what the row names itself.

neg and abs come with float sources, sext with integer ones (SDWA), clamp and omod with a float destination; `row.modifiers`
names clamp and omod of other destinations, and op_sel (LLVM's `VOPInstructions.td`, `VOP3PInstructions.td`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilefw_amd.isa.encoding.modifiers import DWORD, MODIFIERS, ROW_NEWBCAST, UNUSED
from tilefw_amd.isa.encoding.pieces import mask
from tilefw_amd.isa.encoding.shapes import EncodingSyntax
from tilefw_amd.isa.model import FormModifier, FormOperand, MicrocodeFormat
from tilefw_amd.isa.row import Row

# What the fields hold where nothing is written, when it is not 0; these four of SDWA and three of DPP are always
# printed, the format of a typed buffer access is not.
_DEFAULTS = {
    "dst_sel": DWORD, "src0_sel": DWORD, "src1_sel": DWORD, "dst_unused": UNUSED.index("UNUSED_PRESERVE"),
    "dpp_ctrl": 0xE4, "wide_dpp_ctrl": ROW_NEWBCAST, "row_mask": 0xF, "bank_mask": 0xF,
    "format": 1,
}  # fmt: skip
# The name in text and in `MCInst.modifiers`, where the field has another.
NAMES = {
    "offset12": "offset", "smem_offset": "offset", "smem_offset20": "offset", "swizzle": "offset", "matrix_neg": "neg",
    "wide_dpp_ctrl": "dpp_ctrl", "swap_bound_ctrl": "bound_ctrl", "scale_op_sel": "op_sel", "scale_op_sel_hi": "op_sel_hi",
}  # fmt: skip
_FIELDS = {"smem_offset": "offset", "smem_offset20": "offset20", "swizzle": "offset", "wide_dpp_ctrl": "dpp_ctrl"}
_ALWAYS = (frozenset(_DEFAULTS) - {"format"}) | {"smem_offset", "smem_offset20", "scale_op_sel_hi"}
_BY_ROW = ("mai", "mai_scaled", "vop3p")
# Modifiers of VOP3 that no operand's type implies: only rows that name them have them. These stand in bits of others.
_OF_ROWS = ("op_sel", "bitop3", "swap_bound_ctrl", "fi")


def form_modifiers(
    row: Row, shape: EncodingSyntax, format: MicrocodeFormat, operands: Sequence[FormOperand]
) -> tuple[FormModifier, ...]:
    """The modifiers that the form has besides those that are fixed, in the order of text."""
    return tuple(
        _modifier(name, shape, format, operands, row)
        for name in shape.modifiers
        if name not in shape.fixed and name not in row.fixed and _has(name, row, shape, format, operands)
    )


def _has(name: str, row: Row, shape: EncodingSyntax, format: MicrocodeFormat, operands: Sequence[FormOperand]) -> bool:
    if shape.name in _BY_ROW:
        return name in row.modifiers
    sources = [o for o in operands if o.source >= 0]
    if _FIELDS.get(name, name) not in format.fields:
        return False
    if name in row.without or (name == "glc" and not (row.destinations or row.sources)):
        return False
    if name in ("dpp_ctrl", "wide_dpp_ctrl"):
        return (name == "wide_dpp_ctrl") == any(o.registers > 1 and o.pieces for o in operands)
    if name in ("clamp", "omod") and format.name.endswith("_sdwa"):
        return name == "clamp" or _result(operands) == "float" or (_result(operands) == "bits" and name in row.modifiers)
    if name in ("neg", "abs"):
        packed = format.name.endswith("_sdwa")  # which has no sign for two elements
        return any(takes_sign(o) and not (packed and o.type is not None and o.type.packed) for o in sources)
    if name == "sext":
        return any(takes_sext(o) for o in sources)
    if name in ("clamp", "omod"):
        return _result(operands) == "float" or name in row.modifiers
    if name in _OF_ROWS:
        return NAMES.get(name, name) in row.modifiers
    if name == "src1_sel":
        return len(sources) > 1
    return True


def takes_sign(operand: FormOperand) -> bool:
    return operand.source >= 0 and operand.type is not None and operand.type.kind == "float"


def takes_sext(operand: FormOperand) -> bool:
    return operand.source >= 0 and operand.type is not None and operand.type.kind in ("bits", "unsigned", "signed")


def _result(operands: Sequence[FormOperand]) -> str:
    """The kind of the first result that is no lane mask; "" where there is none."""
    kinds = (o.type.kind for o in operands if o.role == "destination" and o.type is not None)
    return next((kind for kind in kinds if kind != "mask"), "")


def _modifier(name: str, shape: EncodingSyntax, format: MicrocodeFormat, operands: Sequence[FormOperand], row: Row) -> FormModifier:
    pieces = format.fields[_FIELDS.get(name, name)].pieces
    count = 0
    if MODIFIERS[name].kind in ("bits", "inline"):
        sources = sum(o.source >= 0 for o in operands)
        if len(pieces) < 4:
            pieces = pieces[:sources]
        elif "byte of destination" not in row.facts:  # those have two bits of op_sel for it, behind the sources'
            pieces = (*pieces[:sources], pieces[3])
        count = len(pieces)
    signed = (shape.name.startswith(("global", "scratch")) and name == "offset") or name == "smem_offset"
    default: int | tuple[int, ...] = (0,) * count if count else _DEFAULTS.get(name, 0)
    if name == "op_sel_hi":
        default = (0 if "abs" in row.modifiers else 1,) * count
    return FormModifier(NAMES.get(name, name), pieces, MODIFIERS[name], default, name in _ALWAYS, count, signed)


def refused_bits(
    shape: EncodingSyntax, format: MicrocodeFormat, modifiers: Sequence[FormModifier], operands: Sequence[FormOperand]
) -> int:
    """Bits that must be 0: of modifiers that the form does not have, and of the shape's `zero` fields that no operand uses.

    What LLVM's disassembler ignores is ignored: op_sel of VOP3, clamp and op_sel_hi of VOP3P, glc of SMEM and the destination's
    part of SDWA, where the instruction does not have them.
    """
    ignored = {"clamp", "op_sel_hi"} if format.name == "vop3p" else {"glc", "dst_sel", "dst_unused"}
    if format.name != "vop3p" and all(modifier.name != "op_sel" for modifier in modifiers):
        ignored |= {"op_sel", "swap_bound_ctrl", "fi"}
    names = (set(shape.modifiers) & set(format.fields)) - set(shape.bits) - ignored
    found = mask(piece for name in names for piece in format.fields[name].pieces)
    found |= mask(piece for name in shape.zero if name in format.fields for piece in format.fields[name].pieces)
    if shape.name == "vop3p":
        own = [piece for modifier in modifiers for piece in modifier.pieces]
        return found & ~mask([*own, *(piece for operand in operands for piece in operand.pieces)])
    used = mask(piece for modifier in modifiers for piece in _used(modifier, operands))
    return found & ~(used | mask(piece for operand in operands for piece in operand.pieces))


def _used(modifier: FormModifier, operands: Sequence[FormOperand]) -> Iterator[tuple[int, int]]:
    """The pieces that mean something: of `neg`, `abs` and `sext` those of sources that can have them."""
    takes = {"neg": takes_sign, "abs": takes_sign, "sext": takes_sext}.get(modifier.name)
    if takes is None or modifier.spelling.kind != "inline":
        yield from modifier.pieces
        return
    for operand in operands:
        if takes(operand) and operand.source < len(modifier.pieces):
            yield modifier.pieces[operand.source]
