"""Forms out of rows: which encodings a row has, which fields its operands take there, and the bits that say that it is it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tilefw_amd.chips import Chip
from tilefw_amd.isa.encoding.codes import codes
from tilefw_amd.isa.encoding.formats import FORMATS
from tilefw_amd.isa.encoding.modifiers import DWORD
from tilefw_amd.isa.encoding.shape_modifiers import NAMES, form_modifiers, refused_bits
from tilefw_amd.isa.encoding.shapes import SHAPES, AddressPart, EncodingSyntax
from tilefw_amd.isa.model import Codes, EncodingField, Form, FormOperand, MicrocodeFormat
from tilefw_amd.isa.registers import VCC
from tilefw_amd.isa.row import Operand, Row
from tilefw_amd.isa.types import TYPES

# Operands that are only written: the one thing that can stand there.
_ONLY_VCC = Codes((VCC,), {VCC: 0})
_ONLY_OFF = Codes((None,), {None: 0})

# Fields of immediates and targets by format, where they are not named as the field; how SOPK and SOPP write plain numbers.
_IMMEDIATE_FIELDS = {"sopk": "simm16", "sopp": "simm16", "sopc": "ssrc1", "smem": "probe"}
_NUMBERS = {("sopk", "simm16"): "hex", ("sopp", "simm16"): "short", ("smem", "probe"): "short"}


def assembled(row: Row, chip: Chip) -> Iterator[Form]:
    """The forms of a row on a chip; of one encoding, those that are a special case of another stand first."""
    for encoding in row.opcodes:
        for shape in SHAPES[encoding]:
            if shape.serves(row):
                yield _form(row, encoding, shape, chip)


def _form(row: Row, encoding: str, shape: EncodingSyntax, chip: Chip) -> Form:
    format = FORMATS["vop3b" if shape.format == "vop3" and _two_results(row) else shape.format]
    operands = tuple(_Fields(row, shape, format).operands())
    modifiers = form_modifiers(row, shape, format, operands)
    bits = {**shape.bits, **row.fixed}
    if "dst_sel" in row.without and "dst_sel" in format.fields:  # SDWA without a choice for the result
        bits["dst_sel"] = DWORD
    mask, value = _pattern(row.opcodes[encoding], bits, format)
    mask |= refused_bits(shape, format, modifiers, operands)
    name = "vop3b" if format.name == "vop3b" else shape.name
    return Form(
        row, name, format, row.mnemonic + _suffix(row, shape), row.opcodes[encoding], operands, modifiers, mask, value, format.size,
        {**shape.fixed, **{n: v for n, v in row.fixed.items() if n in shape.modifiers}}, _order(shape), _ignored(format, operands),
        chip=chip,
    )


def _ignored(format: MicrocodeFormat, operands: tuple[FormOperand, ...]) -> int:
    """The bits that LLVM sets though the form has no use for them: op_sel_hi of sources that VOP3P has room for."""
    sources = sum(o.source >= 0 for o in operands)
    return sum(1 << low for low, _ in format.fields["op_sel_hi"].pieces[sources:]) if format.name == "vop3p" else 0


def _two_results(row: Row) -> bool:
    return len(row.destinations) > 1 and any(o.type is TYPES["mask"] for o in row.destinations)


def _suffix(row: Row, shape: EncodingSyntax) -> str:
    """LLVM names an encoding where the instruction has several; those without operands have one name."""
    written = any(o.role in ("destination", "source") for o in row.operands)
    short = any(name in row.opcodes for name in ("vop1", "vop2", "vopc"))
    if shape.suffix == "_e64":
        return "_e64" if short and written else ""
    if shape.suffix == "_e32":
        return "_e32" if "vop3" in row.opcodes and written else ""
    return shape.suffix


def _order(shape: EncodingSyntax) -> tuple[str, ...]:
    """Fixed and other modifiers by name, as text has them behind the operands."""
    return tuple(dict.fromkeys(NAMES.get(name, name) for name in shape.modifiers))


def _pattern(opcode: int, bits: Mapping[str, int], format: MicrocodeFormat) -> tuple[int, int]:
    """Mask and value of the bits that the format, the opcode and the contents of fields fix."""
    low, width = format.opcode
    mask = format.mask | ((1 << width) - 1) << low
    value = format.value | opcode << low
    for name, content in bits.items():
        for low, width in format.fields[name].pieces:
            mask |= ((1 << width) - 1) << low
            value |= content << low
    return mask, value


class _Fields:
    """Hands the fields of a format out to a row's operands, in their order."""

    def __init__(self, row: Row, shape: EncodingSyntax, format: MicrocodeFormat) -> None:
        self.row = row
        self.shape = shape
        self.format = format
        self.destinations = list(format.destinations)
        self.sources = list(format.sources)
        self.counted = 0

    def operands(self) -> Iterator[FormOperand]:
        for operand in self.row.operands:
            if operand.role == "address":
                yield from (self._part(part) for part in self.shape.place)
            elif operand.role in ("immediate", "target"):
                yield self._immediate(operand)
            elif operand.role in ("destination", "source") and not (self.shape.no_destination and operand.role == "destination"):
                yield self._register(operand)
        yield from (self._part(part) for part in self.shape.tail)

    def _register(self, operand: Operand) -> FormOperand:
        assert operand.type is not None
        if operand.kinds == "l":
            number = "literal" if self.format.name == "sopk" else ""
            return FormOperand(operand.name, operand.role, "", (), "l", operand.type, immediate=number)
        name = self._next(operand)
        if name is None:
            return FormOperand(operand.name, operand.role, "", (), "s", operand.type, 2, -1, operand.read, _ONLY_VCC)
        field = self.format.fields[name]
        kinds = self._kinds(operand, field)
        source = self._count() if operand.role == "source" and operand.type.kind != "mask" else -1
        space = f"accumulator of {field.space}" if kinds == "a" and "a" not in field.kinds else field.space
        table = codes(space, kinds, operand.type.registers, "any first register" not in self.row.facts)
        width = operand.type.registers
        return FormOperand(
            operand.name, operand.role, name, field.pieces, kinds, operand.type, width, source, operand.read, table,
            constants=operand.constants,
        )

    def _kinds(self, operand: Operand, field: EncodingField) -> str:
        if operand.type is TYPES["mask"]:
            return "s"
        wanted = operand.kinds or field.kinds
        if wanted == "a":  # of v_accvgpr_mov_b32, whose vector fields are accumulation registers
            return "a"
        return "".join(kind for kind in field.kinds if kind in wanted)

    def _next(self, operand: Operand) -> str | None:
        """The field of the next operand; None where it is VCC and only written."""
        fields = self.format.fields
        if operand.role == "source":
            if operand.type is TYPES["mask"] and self.format.shared != "vop3":
                return None
            return operand.name if operand.name == "index" and "index" in fields else self.sources.pop(0)
        scalar = operand.type is TYPES["mask"] or operand.kinds == "s"
        if scalar:
            if "sdst" in fields and self.format.name != "vop3b" and self.destinations:
                self.destinations.pop(0)
                return "sdst"
            if self.format.name != "vop3b":
                return None
        return self.destinations.pop(0) if self.destinations else self.sources.pop(0)

    def _count(self) -> int:
        self.counted += 1
        return self.counted - 1

    def _immediate(self, operand: Operand) -> FormOperand:
        format = self.format.shared
        name = _IMMEDIATE_FIELDS[format]
        pieces = self.format.fields[name].pieces
        if operand.role == "target":
            return FormOperand(operand.name, operand.role, name, pieces, "t")
        number = _NUMBERS.get((format, operand.name), operand.name)
        if number == "hex" and any(source.type is not None and source.type.kind == "unsigned" for source in self.row.sources):
            number = "unsigned"  # s_cmpk_lt_u32 and the like do not take -1: it would be 0xffff
        return FormOperand(operand.name, operand.role, name, pieces, "i", immediate=number)

    def _part(self, part: AddressPart) -> FormOperand:
        if not part.field:
            return FormOperand(part.name, "address", "", (), part.kinds, codes=_ONLY_OFF)
        field = self.format.fields[part.field]
        if part.number:
            return FormOperand(part.name, "address", part.field, field.pieces, "i", immediate=part.number, signed=part.signed)
        kinds = part.kinds or field.kinds.replace("o", "")
        table = codes(field.space, kinds, part.registers)
        return FormOperand(part.name, "address", part.field, field.pieces, kinds, None, part.registers, codes=table)
