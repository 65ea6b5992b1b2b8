"""Bytes to instructions: what the words say by an instruction set, or `undefined encoding` (TFW0723).

What LLVM's disassembler refuses is refused. So are registers that it prints as invalid or rounds to a neighbour: tuples at an odd
register, `null` and `lds_direct`, which no chip of the family has.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from tilefw.api.errors import CodeError
from tilefw_amd.isa.encoding.formats import FORMATS
from tilefw_amd.isa.encoding.pieces import mask, put, take, width_of
from tilefw_amd.isa.model import BranchTarget, Form, FormModifier, FormOperand, Literal32, MCInst, MicrocodeFormat, Modifier
from tilefw_amd.isa.set import InstructionSet

UNDEFINED = "TFW0723"
NONE: Mapping[str, Modifier] = MappingProxyType({})

LONGEST = max(format.size for format in FORMATS.values())
_PREFIX = 23  # the lowest bit of the longest of the prefixes that tell formats apart
_LITERAL = object()

Take = Callable[[int], object]
"""The operand in a word; `_LITERAL` where it stands behind the word, a str where the code is undefined."""


def decode(isa: InstructionSet, code: bytes, offset: int = 0, name: str = "code") -> MCInst:
    """The instruction at a byte offset. Raises CodeError TFW0723, which says the bytes, their place in `name` and the reason."""
    if offset & 3 or offset + 4 > len(code):
        raise _undefined(code, offset, name, "an instruction is whole words of 4 bytes")
    first = int.from_bytes(code[offset : offset + 4], "little")
    word = int.from_bytes(code[offset : offset + LONGEST], "little")
    reason = ""
    for reader in isa.own(_Readers).of(first):
        form = reader.form
        if word & form.mask != form.value:
            continue
        if offset + form.size > len(code):
            reason = reason or f"{form.mnemonic} is cut short"
            continue
        found = reader.read(word, code, offset)
        if isinstance(found, MCInst):
            return found
        reason = reason or f"{form.mnemonic}: {found}"
    raise _undefined(code, offset, name, reason or f"no instruction of {isa.chip.name} has this opcode and these bits")


def decode_all(isa: InstructionSet, code: bytes, name: str = "code") -> Iterator[tuple[int, MCInst]]:
    """(Byte offset, instruction) one after another. Raises CodeError TFW0723 at the first that is none."""
    offset = 0
    while offset < len(code):
        inst = decode(isa, code, offset, name)
        yield offset, inst
        offset += inst.size


def _undefined(code: bytes, offset: int, name: str, reason: str) -> CodeError:
    words = " ".join(code[at : at + 4].hex() for at in range(offset, min(offset + 8, len(code)), 4))
    return CodeError(f"{name}: undefined encoding at byte {offset:#x}: {words}", UNDEFINED, note=reason)


class _FormDecoder:
    """One form, ready to read words."""

    __slots__ = ("apart", "defaults", "form", "longer", "mask", "modifiers", "takes")

    def __init__(self, form: Form, longer: tuple[tuple[int, int], ...]) -> None:
        self.form, self.longer = form, longer
        self.apart = _apart(form)
        self.takes = tuple(_taker(operand) for operand in form.operands)
        self.modifiers = tuple(_Bits(m.name, m, _spread(m, m.default)) for m in form.modifiers)
        self.mask = mask(piece for m in self.modifiers for piece in m.modifier.pieces)
        self.defaults = functools.reduce(lambda bits, m: bits | m.default, self.modifiers, 0)

    def read(self, word: int, code: bytes, offset: int) -> MCInst | str:
        """The instruction, or why there is none."""
        if self.apart and word & self.apart == self.apart:
            return "accumulation registers and sc1 are not together here"
        if self.longer and any(word & bits == value for bits, value in self.longer):
            return "with the words behind it, it would be one instruction"
        operands: list[object] = []
        size = self.form.size
        for read in self.takes:
            operand = read(word)
            if operand is _LITERAL:
                end = offset + self.form.size + 4
                if end > len(code):
                    return "its literal is cut off"
                operand = Literal32(int.from_bytes(code[end - 4 : end], "little"))
                size = self.form.size + 4
            elif type(operand) is str:
                return operand
            operands.append(operand)
        modifiers = NONE
        if word & self.mask != self.defaults:
            found = self.changed(word)
            if isinstance(found, str):
                return found
            modifiers = found
        return MCInst(self.form, tuple(operands), modifiers, size)  # type: ignore[arg-type]

    def changed(self, word: int) -> Mapping[str, Modifier] | str:
        """The modifiers that differ from their default, or which one has a value that means nothing."""
        found: dict[str, Modifier] = {}
        for name, modifier, _ in self.modifiers:
            value = _value(modifier, word)
            if value != modifier.default:
                if modifier.spelling.kind == "choice" and value not in modifier.spelling.choices:
                    return f"{name} has no value {value}"
                found[name] = value
        return found


def _longer(form: Form, several: Sequence[Form]) -> tuple[tuple[int, int], ...]:
    """Mask and value of the bits by which words are longer instructions at this opcode, whatever their fixed modifiers are."""
    found: dict[tuple[int, int], None] = {}
    for other in several:
        if other.size > form.size:
            numbers = mask(piece for name in other.fixed for piece in other.format.fields[name].pieces)
            found[other.mask & ~numbers, other.value & ~numbers] = None
    return tuple(found)


def _apart(form: Form) -> int:
    """Bits that LLVM refuses together: accumulation registers and sc1, of flat and global atomics of f64 that return."""
    facts, names = form.row.facts, form.format.fields
    doubles = "returns" in facts and form.row.mnemonic.endswith("_f64") and form.format.name == "flat"
    if doubles and not form.value >> names["sc0"].pieces[0][0] & 1:
        return 0  # the form without a result
    return sum(1 << names[name].pieces[0][0] for name in ("acc", "sc1")) if doubles else 0


class _Bits(NamedTuple):
    name: str
    modifier: FormModifier
    default: int


def _value(modifier: FormModifier, word: int) -> Modifier:
    if modifier.count:
        return tuple(word >> low & 1 for low, _ in modifier.pieces)
    value, width = take(modifier.pieces, word), width_of(modifier.pieces)
    return value - (1 << width) if modifier.signed and value >> (width - 1) else value


def _spread(modifier: FormModifier, value: Modifier) -> int:
    """The modifier's bits in a word, for that value."""
    if isinstance(value, tuple):
        return functools.reduce(lambda word, bit: word | bit[0] << bit[1][0], zip(value, modifier.pieces, strict=True), 0)
    assert isinstance(value, int)
    return put(modifier.pieces, value)


def _taker(operand: FormOperand) -> Take:
    """How the operand is read of a word."""
    if not operand.pieces:
        only: object = _LITERAL if operand.kinds == "l" else operand.codes.decode[0] if operand.codes else None
        return lambda word: only
    low, width = operand.pieces[0]
    mask = (1 << width) - 1
    if operand.codes is None:
        return _number_taker(operand, low, width)
    table: list[object] = list(operand.codes.decode)
    if operand.codes.literal >= 0:
        table[operand.codes.literal] = _LITERAL
    if len(operand.pieces) == 1:
        return lambda word: table[word >> low & mask]
    ninth = operand.pieces[1][0]
    return lambda word: table[word >> low & mask | (word >> ninth & 1) << width]


def _number_taker(operand: FormOperand, low: int, width: int) -> Take:
    mask, sign = (1 << width) - 1, 1 << (width - 1)
    if "t" in operand.kinds:
        return lambda word: BranchTarget((word >> low & mask ^ sign) - sign)
    if operand.signed:
        return lambda word: (word >> low & mask ^ sign) - sign
    return lambda word: word >> low & mask


@functools.lru_cache(maxsize=1)
def _formats() -> tuple[MicrocodeFormat | None, ...]:
    """The format by the nine highest bits of the first word; where several prefixes fit, the longest says."""
    own = sorted((f for f in FORMATS.values() if f.shared == f.name), key=lambda f: f.mask)
    found: list[MicrocodeFormat | None] = []
    for prefix in range(1 << (32 - _PREFIX)):
        word = prefix << _PREFIX
        found.append(next((f for f in reversed(own) if word & f.mask == f.value), None))
    return tuple(found)


class _Readers:
    """The readers of one instruction set, by format and opcode. One is made when its opcode is first met: a program has some dozens
    of the two thousand forms."""

    def __init__(self, isa: InstructionSet) -> None:
        self._isa = isa
        self._known: dict[tuple[str, int], tuple[_FormDecoder, ...]] = {}

    def of(self, first: int) -> tuple[_FormDecoder, ...]:
        """The forms that a first word may be."""
        format = _formats()[first >> _PREFIX]
        if format is None:
            return ()
        low, width = format.opcode
        key = format.name, first >> low & (1 << width) - 1
        found = self._known.get(key)
        if found is None:
            several = self._isa.forms_by_opcode.get(key, ())
            found = self._known[key] = tuple(_FormDecoder(form, _longer(form, several)) for form in several)
        return found
