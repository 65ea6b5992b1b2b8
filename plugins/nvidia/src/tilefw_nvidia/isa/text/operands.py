"""The text of one instruction's operands, taken apart: names, numbers, addresses, vectors, pairs (PTX ISA, "Instruction Operands").

Each distinct operand text is parsed once a module: registers and constants come back hundreds of times.
"""

from __future__ import annotations

import re

from tilefw.api.floats import float_bits
from tilefw_nvidia.isa.text.cursor import integer
from tilefw_nvidia.isa.text.syntax import AddressOperand, Float, Integer, Name, Operand, PairOperand, SinkOperand, VectorOperand

_SPLIT = re.compile(r"\s*((?:\{[^{}]*\}|\[[^\[\]]*\]|[^,{}\[\]])+)(?:,|$)")
_NAME = re.compile(r"(!?)\s*([A-Za-z_$%][\w$]*(?:\.[xyzw])?)$")
_INTEGER = re.compile(r"([+-]?)\s*(0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)U?$")
_HEX_FLOAT = re.compile(r"0(?:[fF]([0-9a-fA-F]{8})|[dD]([0-9a-fA-F]{16}))$")
_DECIMAL = re.compile(r"[+-]?(?:\d+\.\d*(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)$")
_SUM = re.compile(r"([A-Za-z_$%][\w$]*)\s*([+-])\s*(-?\s*(?:0[xX][0-9a-fA-F]+|\d+)U?)$")
_COORDINATES = re.compile(r"([^,{}]*?)\s*,\s*\{([^{}]*)\}$")
_INTEGER_LIMIT = 40  # characters; longer constants fit no type, and Python parses them in quadratic time


class OperandError(ValueError):
    """A piece of operand text that means nothing; `text` is that piece."""

    def __init__(self, message: str, text: str) -> None:
        super().__init__(message)
        self.text = text


class OperandReader:
    """Parses operand texts, each distinct one once."""

    def __init__(self) -> None:
        self._known: dict[str, Operand] = {}

    def read(self, text: str) -> tuple[Operand, ...]:
        """All operands of one instruction. Raises OperandError."""
        if not text:
            return ()
        parts = text.split(",") if "{" not in text and "[" not in text else self._split(text)
        known = self._known
        return tuple([known[part] if part in known else self._remember(part) for part in parts])

    def _split(self, text: str) -> list[str]:
        parts: list[str] = []
        position = 0
        while position < len(text):
            match = _SPLIT.match(text, position)
            if match is None:
                raise OperandError("these operands cannot be read", text[position:])
            parts.append(match.group(1))
            position = match.end()
        if text.endswith(","):
            raise OperandError("an operand is missing after the last comma", text[-1:])
        return parts

    def _remember(self, text: str) -> Operand:
        operand = self._known[text] = self._operand(text.strip())
        return operand

    def _operand(self, text: str) -> Operand:
        if not text:
            raise OperandError("an operand is missing", "")
        if text == "_":
            return SinkOperand()
        if match := _NAME.match(text):
            return Name(match[2], negated=bool(match[1]))
        if text[0] == "[" and text[-1] == "]":
            return self._address(text[1:-1].strip())
        if text[0] == "{" and text[-1] == "}":
            return VectorOperand(tuple(self._operand(part.strip()) for part in text[1:-1].split(",")))
        if "|" in text:
            first, _, second = text.partition("|")
            return PairOperand(self._operand(first.strip()), self._operand(second.strip()))
        if match := _SUM.match(text):
            return Name(match[1], offset=_signed(match[2], match[3]))
        return self._number(text)

    def _number(self, text: str) -> Operand:
        if match := _INTEGER.match(text):
            return Integer(_integer(text))
        sign, bare = (text[0], text[1:].lstrip()) if text[0] in "+-" else ("", text)
        if match := _HEX_FLOAT.match(bare):
            bits = 32 if match[1] else 64
            pattern = int(match[1] or match[2], 16)
            return Float(pattern ^ (1 << (bits - 1)) if sign == "-" else pattern, bits)
        if _DECIMAL.match(text):
            return Float(float_bits(float(text), "f64"), 64, decimal=True)
        raise OperandError(f"{text!r} is not an operand", text)

    def _address(self, text: str) -> AddressOperand:
        if match := _COORDINATES.match(text):
            place = self._address(match[1])
            return AddressOperand(place.base, place.offset, tuple(self._operand(part.strip()) for part in match[2].split(",")))
        if match := _NAME.match(text):
            if match[1]:
                raise OperandError("an address cannot be negated", text)
            return AddressOperand(match[2], 0)
        if match := _SUM.match(text):
            return AddressOperand(match[1], _signed(match[2], match[3]))
        if _INTEGER.match(text):
            return AddressOperand(None, _integer(text))
        raise OperandError(f"'[{text}]' is not an address", text)


def _integer(text: str) -> int:
    if len(text) > _INTEGER_LIMIT:
        raise OperandError("this constant is too long", text)
    try:
        return integer(text.replace(" ", "").removeprefix("+"))
    except ValueError:
        raise OperandError(f"{text!r} is not an integer", text) from None


def _signed(sign: str, text: str) -> int:
    value = _integer(text)
    return -value if sign == "-" else value
