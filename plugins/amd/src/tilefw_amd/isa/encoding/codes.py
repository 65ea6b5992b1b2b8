"""What the value of an operand field means, and back: registers, inline constants and the mark of a literal, as tables.

A field is a space of codes; which of them an operand may use is given by its kinds and its width in registers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

from tilefw_amd.isa.constants import INLINE
from tilefw_amd.isa.model import CodeMeaning, Codes, File, InlineConstant, Operand, RegisterTuple
from tilefw_amd.isa.registers import EXEC, M0, READ_ONLY, SGPRS, TTMP0, VCC, VECTORS, misaligned, missing, name

LITERAL = 255  # in the fields of sources: 32 bits follow the instruction
OFF = 127  # in saddr: no register (CDNA3 ISA, section "Flat memory instructions")
FIRST_VECTOR = 256  # in the 9-bit fields of sources


@functools.cache
def codes(space: str, kinds: str, registers: int, aligned: bool = True) -> Codes:
    """The codes of a field `space` for an operand of those kinds (of v, a, s, c, l, o), `registers` wide, which begins at a
    register that tuples may begin at, or where it is not `aligned` at any."""
    size, meaning = _SPACES[space]
    wanted = _Wanted(kinds, registers, aligned)
    decode = tuple(meaning(code, wanted) for code in range(size))
    encode: dict[Operand, int] = {}
    for code, operand in enumerate(decode):
        if not isinstance(operand, str):
            encode.setdefault(operand, code)
            if isinstance(operand, RegisterTuple) and operand.file == "s" and operand.index in READ_ONLY:
                encode.setdefault(RegisterTuple("s", operand.index), code)  # one name for the value, however wide it is read
    return Codes(decode, encode, LITERAL if "l" in kinds and size > LITERAL else -1)


@dataclass(frozen=True, slots=True)
class _Wanted:
    kinds: str
    registers: int
    aligned: bool

    def tuple(self, file: File, index: int) -> CodeMeaning:
        """The tuple of that first register, if it may stand here."""
        found = RegisterTuple(file, index, self.registers)
        if file not in self.kinds:
            return f"{name(found)} is not allowed here"
        return missing(found) or (misaligned(found) if self.aligned else "") or found


def _scalar(code: int, wanted: _Wanted) -> CodeMeaning:
    """Codes 0 to 255: scalar registers, inline constants, read-only values, the literal's mark."""
    if code < SGPRS + 6 or TTMP0 <= code <= M0.index or code in (126, 127):
        return wanted.tuple("s", code)
    if code in INLINE:
        return InlineConstant(code) if "c" in wanted.kinds else "a constant is not allowed here"
    if code in READ_ONLY and wanted.registers <= 2:
        return wanted.tuple("s", code)
    return "a literal is not allowed here" if code == LITERAL else f"{code} is not an operand"


def _scalar_destination(code: int, wanted: _Wanted) -> CodeMeaning:
    return _scalar(code, wanted) if code < 128 else f"{code} is not a register"


def _source(code: int, wanted: _Wanted) -> CodeMeaning:
    """The 9 bits of a source of a vector instruction."""
    return wanted.tuple("v", code - FIRST_VECTOR) if code >= FIRST_VECTOR else _scalar(code, wanted)


def _vector(code: int, wanted: _Wanted) -> CodeMeaning:
    """8 bits and, as the ninth, whether it is an accumulation register."""
    return wanted.tuple("a" if code >= VECTORS else "v", code % VECTORS)


def _accumulator(code: int, wanted: _Wanted) -> CodeMeaning:
    """8 or 9 bits that count accumulation registers as others count vector registers (V_ACCVGPR_MOV_B32)."""
    return wanted.tuple("a", code % VECTORS)


def _accumulator_of_source(code: int, wanted: _Wanted) -> CodeMeaning:
    return _accumulator(code, wanted) if code >= FIRST_VECTOR else f"{code} is not an accumulation register"


def _accumulator_source(code: int, wanted: _Wanted) -> CodeMeaning:
    """The 9 bits of a source of a matrix instruction and, as the tenth, whether its vectors are accumulation registers."""
    half = 2 * VECTORS
    if code % half < FIRST_VECTOR:
        return _scalar(code % half, wanted)
    return wanted.tuple("a" if code >= half else "v", code % half - FIRST_VECTOR)


def _sub_dword(code: int, wanted: _Wanted) -> CodeMeaning:
    """8 bits of a vector register or, with the ninth set, of a scalar operand (CDNA3 ISA, section "SDWA")."""
    return _scalar(code - 256, wanted) if code >= 256 else wanted.tuple("v", code)


def _sub_dword_mask(code: int, wanted: _Wanted) -> CodeMeaning:
    """The mask that an SDWA comparison writes: VCC, or with the eighth bit set the 7 bits' register."""
    return _scalar(code - 128, wanted) if code >= 128 else VCC


def _address(code: int, wanted: _Wanted) -> CodeMeaning:
    """The 7 bits of a scalar address, which may be off, but is never EXEC."""
    if code >= EXEC.index and not (code == EXEC.index and wanted.registers == 1):
        return None if code == OFF and "o" in wanted.kinds else "exec is not allowed here"
    return _scalar(code, wanted)


def _data(code: int, wanted: _Wanted) -> CodeMeaning:
    """The data of scalar memory: neither M0 nor EXEC."""
    return _scalar(code, wanted) if code < M0.index else f"{code} is not allowed here"


def _scaled(step: int) -> Callable[[int, _Wanted], CodeMeaning]:
    return lambda code, wanted: _scalar(step * code, wanted)


_SPACES: dict[str, tuple[int, Callable[[int, _Wanted], CodeMeaning]]] = {
    "vector": (2 * VECTORS, _vector),
    "source": (2 * VECTORS, _source),
    "accumulator source": (4 * VECTORS, _accumulator_source),
    "sub-dword source": (512, _sub_dword),
    "sub-dword mask": (256, _sub_dword_mask),
    "accumulator of vector": (VECTORS, _accumulator),
    "accumulator of source": (2 * VECTORS, _accumulator_of_source),
    "scalar source": (256, _scalar),
    "scalar": (128, _scalar),
    "scalar destination": (256, _scalar_destination),
    "scalar pair": (64, _scaled(2)),
    "scalar quad": (32, _scaled(4)),
    "scalar address": (128, _address),
    "scalar data": (128, _data),
}
