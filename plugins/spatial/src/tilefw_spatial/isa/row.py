"""The definition of an instruction: its mnemonic, the queues that take it, the fields of its word, when its effect is there.

Fields in the order of the text. A stream field of b planes names the first of b consecutive streams, b-aligned; b is the number of
bytes of the instruction's element type where `planes` is 0. Two bits of `map` give the kind of an ALU's operand field (`ALU`):

| kind | bits of `map` | the field holds |
|---|---|---|
| stream | 0 | the first stream of the element's planes |
| ALU | 1 | the ALU's number in bits 0-3, its delay in steps in bits 4-5 |
| immediate | 2 | 0; the element's bits are in `imm` |
| lane, or none | 3 | 0; the number of the lane, 0 to 319; for an operand that the row lacks or may lack: none |

Operand k (a, b, c) has its kind in bits 2k and 2k + 1 of `map`, its `negate` in bit 6 + k, its `absolute` in bit 9 + k; the two
are for floats and act in the order |x|, -x.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum


class Use(StrEnum):
    """What a field of the word means to a row."""

    TAKE = "takes streams"
    PUT = "puts on streams"
    ALU = "operand of the row's type"
    MASK = "operand of type int1"
    CONSTANT = "immediate or lane's number, of the row's type"
    START = "operand of the row's type, or none"
    ROW = "row of a slice, bank · rows + row"
    ACCUMULATOR = "row of accumulators, bank · rows + row"
    STEP = "added for each further vector"
    NUMBER = "number"
    LANES = "index of a map of lanes"
    FLAG = "flag"


ALU_USES = frozenset({Use.ALU, Use.MASK, Use.CONSTANT, Use.START})


class OperandKind(IntEnum):
    """Where an ALU's operand comes from, as `map` has it."""

    STREAM = 0
    ALU = 1
    IMMEDIATE = 2
    LANE = 3


_ALU_BITS = 4


def alu_operand(number: int, steps: int) -> int:
    """The field of an operand that is the result of ALU `number`, so many delay steps after it appeared."""
    return number | steps << _ALU_BITS


def alu_and_steps(value: int) -> tuple[int, int]:
    """(The ALU's number, the delay in steps) of an operand's field."""
    return value & (1 << _ALU_BITS) - 1, value >> _ALU_BITS


@dataclass(frozen=True, slots=True)
class WordField:
    """One field of a row. `part` is the attribute of `program.QueueInst` (and field of the word); `key` its name in text, empty for
    an operand by position. Numbers are within `low` to `high`; a flag is the value `low` in `flags`."""

    part: str
    use: Use
    key: str = ""
    planes: int = 0
    low: int = 0
    high: int = 0
    default: int | None = None  # not written in text when it has this value


@dataclass(frozen=True, slots=True)
class InstructionRow:
    """One mnemonic. `code` is the opcode of its first variant, the others follow; `queues` are the kinds of `machine.Queue` that
    take it; `types` the element types that it works on (of each variant where `typed` names them); `latency` a key of the machine's
    delays, or "" where the row has no effect of its own; `burst`: whether it works on several vectors, a cycle each."""

    name: str
    unit: str
    queues: frozenset[str]
    code: int
    fields: tuple[WordField, ...]
    latency: str
    doc: str
    variants: tuple[str, ...] = ("",)
    types: frozenset[str] = frozenset()
    typed: tuple[tuple[str, frozenset[str]], ...] = ()
    burst: bool = True

    @property
    def operands(self) -> tuple[WordField, ...]:
        """The fields that are operands of an ALU, in the order a, b, c."""
        return tuple(f for f in self.fields if f.use in ALU_USES)

    def types_of(self, variant: str) -> frozenset[str]:
        """The element types of one variant."""
        return dict(self.typed).get(variant, self.types)

    def named(self, variant: str) -> str:
        """The op as `QueueInst.op` has it: `CMP.lt`, `RD`."""
        return f"{self.name}.{variant}" if variant else self.name
