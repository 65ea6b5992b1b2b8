"""The instruction set of SDM-1: every row by its mnemonic. Times count from issue at the unit's position, cycle t.

`meanings` has what the arithmetic rows compute; what the others do is described here and carried out by the simulators.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import NamedTuple

from tilefw_spatial.isa.row import InstructionRow, Use, WordField
from tilefw_spatial.isa.types import INTEGERS, TYPES

_ALL = frozenset(TYPES)
_INTS = frozenset(INTEGERS)
_FP32 = frozenset({"fp32"})
_ARITHMETIC = _INTS | _FP32
_BITS = _INTS | {"int1"}
_EXTREMES = _INTS | _FP32
_PRODUCTS = frozenset({"int8", "fp8e4nv", "fp8e5", "fp16", "bf16"})
_EVERY_QUEUE = frozenset({"MEM", "LW", "MAC", "DRN", "ALU", "SXM", "C2C"})

PUT_FLAG = 1
"""`flags` of an ALU row: the result also goes to the streams from `dst` on."""
ACCUMULATE_FLAG = 1
"""`flags` of MAC: sums are added to the accumulators; else they set them."""
HALF_FLAG = 2
"""`flags` of MAC: the activations are the lanes from half of them on."""

# --- fields ----------------------------------------------------------------------------------------------------------------

_AT = WordField("address", Use.ROW)
_STEP = WordField("step", Use.STEP, "step", low=-4096, high=4095, default=1)
_ACCUMULATOR = WordField("address", Use.ACCUMULATOR)
_PUT = WordField("dst", Use.PUT)
_X, _Y, _Z = (WordField(part, Use.ALU) for part in "abc")


def _take(part: str, planes: int = 0) -> WordField:
    return WordField(part, Use.TAKE, planes=planes)


def _put(planes: int) -> WordField:
    return WordField("dst", Use.PUT, planes=planes)


def _flag(key: str, bit: int) -> WordField:
    return WordField("flags", Use.FLAG, key, low=bit)


def _number(part: str, key: str, low: int, high: int, default: int | None = None) -> WordField:
    return WordField(part, Use.NUMBER, key, low=low, high=high, default=default)


# --- rows ------------------------------------------------------------------------------------------------------------------

_CONTROL = (
    InstructionRow("NOP", "ICU", _EVERY_QUEUE, 0x01, (_number("imm", "", 1, 65535),), "",
        "The queue is idle for so many cycles.", burst=False),
    InstructionRow("REP", "ICU", _EVERY_QUEUE, 0x02,
        (_number("burst", "m", 1, 4096), _number("imm", "d", 1, 65535), replace(_STEP, key="inc", default=0)), "",
        "The instruction before it issues m more times, each d cycles after the last (d is at least its burst), `inc` "
        "added to its address each time. The queue is free when the last of them is done.", burst=False),
    InstructionRow("SYNC", "ICU", _EVERY_QUEUE, 0x03, (), "",
        "The queue waits; it goes on in the cycle in which it is notified.", burst=False),
    InstructionRow(
        "NTFY", "ICU", _EVERY_QUEUE, 0x04, (), "notify", "All queues of the chip that wait at t + 35 go on then.", burst=False
    ),
    InstructionRow("IFETCH", "ICU", _EVERY_QUEUE, 0x05, (_take("a", 1),), "fetch",
        "Two vectors that pass at t and t + 1 are appended to this queue as 40 words, at t + 1 + 2.", burst=False),
    InstructionRow("CFG", "ICU", _EVERY_QUEUE, 0x06, (_number("imm", "", 0, 65535, 0),), "",
        "`vl`: so many superlanes, 1 to 20, carry data from here on, and `power`: level 0 to 3; both concern energy "
        "alone, not results. `halt`: the queue ends.", ("vl", "power", "halt"), burst=False),
)

_MEMORY = (
    InstructionRow(
        "RD", "MEM", frozenset({"MEM"}), 0x10, (_AT, _STEP, _put(1)), "read", "The row, read at t, is on the stream at t + 5."
    ),
    InstructionRow("WR", "MEM", frozenset({"MEM"}), 0x11, (_AT, _STEP, _take("a", 1)), "write",
        "What passes at t + 2 is stored then; a slice writes at most one row a cycle, in another bank than it reads."),
    InstructionRow("GTH", "MEM", frozenset({"MEM"}), 0x12, (_AT, _take("a", 2), _put(1)), "gather",
        "Each lane reads its own byte of row `address` + its index; the indices are uint16 that pass at t, and stay in "
        "the bank. The bytes, read at t + 4, are on the stream at t + 9."),
    InstructionRow("SCT", "MEM", frozenset({"MEM"}), 0x13, (_AT, _take("a", 2), _take("b", 1)), "scatter",
        "Each lane stores its own byte, which passes at t + 2, in row `address` + its index; the indices are uint16 that "
        "pass at t + 2, and stay in the bank. No two lanes share a byte."),
)

_MATRIX = (
    InstructionRow("LW", "MXM", frozenset({"LW"}), 0x20, (_number("imm", "buf", 0, 1), _take("a", 16)), "load_weights",
        "16 streams fill a weight buffer from row 0 of K on: each cycle takes 16/b rows; byte p of the r-th of them is on "
        "stream r · b + p. At most as many cycles as K has rows for. The buffer then holds these rows and no others.",
        types=_PRODUCTS),
    InstructionRow("IW", "MXM", frozenset({"LW"}), 0x21, (_number("imm", "buf", 0, 1),), "install_weights",
        "The buffer, which an LW filled before t, is what each MAC issued from t + 20 on multiplies by. Nothing may be "
        "loaded into it from t until the last such MAC.",
        types=_PRODUCTS, burst=False),
    InstructionRow("MAC", "MXM", frozenset({"MAC"}), 0x22,
        (_take("a"), _ACCUMULATOR, _STEP, _number("imm", "depth", 1, 320), _flag("add", ACCUMULATE_FLAG), _flag("half", HALF_FLAG)),
        "multiply_pair",
        "For each column: the sum, over the first `depth` rows of K, of activation times weight, both of the type named; "
        "the activations pass at t, in lanes 0 up, or from lane 160 on with `half`. Floats: the sum is exact and rounded "
        "once to fp32; int8: int32 that wraps. It sets the accumulator at t + 24 (int8: t + 40), or with `add` is added "
        "to it there, rounded once more. int8 takes one plane; all others take the pair, by the queues of plane 0.",
        types=_PRODUCTS),
    InstructionRow("DRN", "MXM", frozenset({"DRN"}), 0x23, (_ACCUMULATOR, _STEP, _PUT), "drain",
        "The accumulator, as it is at t, is on the streams at t + 4.", types=_FP32 | {"int32"}),
)

_SWITCH = frozenset({"SXM"})
_SHIFT_LANES = WordField("step", Use.STEP, "by", low=-320, high=320)
_LANES = WordField("map", Use.LANES, "map")
_LANE_ROWS = (
    InstructionRow("LSH", "SXM", _SWITCH, 0x28, (_take("a"), _SHIFT_LANES, _PUT), "switch_across",
        "Lane i is lane i - `by` of what passes at t, zero where there is none.", types=_ALL),
    InstructionRow("SELL", "SXM", _SWITCH, 0x29, (_take("a"), _take("b"), _LANES, _PUT), "switch",
        "Lane i is that of a where the map has not -1 there, else that of b.", types=_ALL),
    InstructionRow("PRM", "SXM", _SWITCH, 0x2A, (_take("a"), _LANES, _PUT), "switch_across",
        "Lane i is lane map[i] of what passes at t, zero for -1.", types=_ALL),
    InstructionRow("DST", "SXM", _SWITCH, 0x2B, (_take("a"), _LANES, _PUT), "switch",
        "As PRM, with a map that stays within each superlane.", types=_ALL),
    InstructionRow("TRN", "SXM", _SWITCH, 0x2C, (_take("a", 16), _put(16)), "transpose",
        "In each superlane, byte j of stream i of 16 goes to byte i of stream j."),
)

_LINK = frozenset({"C2C"})
_CHIPS = (
    InstructionRow("SND", "C2C", _LINK, 0x30, (_take("a", 1),), "link",
        "What passes at t leaves by the link; a link takes a vector each 24 cycles.",
        burst=False),
    InstructionRow("RCV", "C2C", _LINK, 0x31, (_put(1),), "",
        "The vector that the other end sent 217 cycles ago is on the stream at t.", burst=False),
    InstructionRow("DSK", "C2C", _LINK, 0x32, (), "",
        "The queue waits for the chip's next epoch (252 cycles), which all chips of the node begin together.", burst=False),
)

_ALU = frozenset({"ALU"})
_RESULT = WordField("dst", Use.PUT)


class _Vector(NamedTuple):
    """A row of the vector unit as written below: all have the same queues, result and burst."""

    name: str
    code: int
    operands: tuple[WordField, ...]
    types: frozenset[str]
    doc: str
    variants: tuple[str, ...] = ("",)
    typed: tuple[tuple[str, frozenset[str]], ...] = ()
    extra: tuple[WordField, ...] = ()
    latency: str = "alu"

    def row(self) -> InstructionRow:
        fields = (*self.operands, *self.extra, _RESULT)
        return InstructionRow(
            self.name, "VXM", _ALU, self.code, fields, self.latency, self.doc, self.variants, self.types, self.typed
        )


_SATURATING = ("sat", _INTS)
_EVERY = _number("step", "every", 1, 4095)
ROUNDINGS = ("floor", "ceil", "trunc", "even")
_COMBINED = ("add", "mul", "min", "max", "minnum", "maxnum", "and", "or", "xor")

_VECTOR = tuple(entry.row() for entry in (
    _Vector("ADD", 0x40, (_X, _Y), _ARITHMETIC,
        "x + y. Floats are rounded to nearest even; integers wrap, or with `sat` end at the type's ends.",
        ("", "sat"), (_SATURATING,)),
    _Vector("SUB", 0x44, (_X, _Y), _ARITHMETIC, "x - y, as ADD.", ("", "sat"), (_SATURATING,)),
    _Vector("MUL", 0x48, (_X, _Y), _ARITHMETIC, "x · y, as ADD; `hi`: the high half of the product.", ("", "sat", "hi"),
        (_SATURATING, ("hi", _INTS))),
    _Vector("FMA", 0x4C, (_X, _Y, _Z), _ARITHMETIC, "x · y + z; floats are rounded once, integers wrap."),
    _Vector("MIN", 0x50, (_X, _Y), _EXTREMES,
        "The smaller; -0 is below 0. Of floats NaN if either is, or with `num` the number if only one is.",
        ("", "num"), (("num", _FP32),)),
    _Vector("MAX", 0x54, (_X, _Y), _EXTREMES, "The larger; as MIN.", ("", "num"), (("num", _FP32),)),
    _Vector("LOGIC", 0x58, (_X, _Y), _BITS, "`and`, `or`, `xor` of bits.", ("and", "or", "xor")),
    _Vector("NOT", 0x5C, (_X,), _BITS, "All bits inverted; of an int1 its one."),
    _Vector("MOV", 0x5D, (_X,), _ALL, "x, with its modifiers."),
    _Vector("CST", 0x5E, (WordField("a", Use.CONSTANT),), _ALL, "The immediate, or the lane's number."),
    _Vector("SHIFT", 0x60, (_X, _Y), _INTS,
        "x shifted by y, an unsigned number: `left`; `right` fills with zeros, `arith` with the sign. A y of the width or "
        "more shifts everything out.", ("left", "right", "arith")),
    _Vector("CMP", 0x64, (_X, _Y), _ALL,
        "An int1: x = y, x ≠ y, x < y, x ≤ y, x > y, x ≥ y. With a NaN `ne` holds and no other.",
        ("eq", "ne", "lt", "le", "gt", "ge")),
    _Vector("SELM", 0x6C, (WordField("a", Use.MASK), _Y, _Z), _ALL, "The second operand where the mask is true, else the third."),
    _Vector("CVT", 0x70, (_X,), _ALL,
        "x as the type of the variant. To floats rounded to nearest even, too large is infinity, in fp8 the largest "
        "number; floats to integers towards zero, to the type's ends, NaN to 0; integers to integers keep the low bits; "
        "to int1: whether x is not zero. `floor`, `ceil`, `trunc`, `even`: an fp32 rounded to an integral fp32.",
        (*TYPES, *ROUNDINGS), tuple((name, _FP32) for name in ROUNDINGS)),
    _Vector("EX2", 0x80, (_X,), _FP32, "2 to the power x, by the steps above.", latency="transcendental"),
    _Vector("LG2", 0x81, (_X,), _FP32, "The logarithm to base 2, by the steps above.", latency="transcendental"),
    _Vector("RCP", 0x82, (_X,), _FP32, "1 / x, correctly rounded.", latency="transcendental"),
    _Vector("RSQ", 0x83, (_X,), _FP32, "1 / √x, correctly rounded.", latency="transcendental"),
    _Vector("SQR", 0x84, (_X,), _FP32, "√x, correctly rounded.", latency="transcendental"),
    _Vector("TRED", 0x88, (_X, WordField("c", Use.START)), _ARITHMETIC,
        "Combines each `every` successive vectors of the burst, in order of time, beginning with the first, or with the "
        "operand c as it is there; the result is there 4 cycles after the last of them. `and`, `or`, `xor` are for "
        "integers, `minnum`, `maxnum` for floats.", _COMBINED,
        (*((name, _INTS) for name in _COMBINED[6:]), *((name, _FP32) for name in _COMBINED[4:6])), (_EVERY,)),
))

ROWS: dict[str, InstructionRow] = {row.name: row for row in (*_CONTROL, *_MEMORY, *_MATRIX, *_LANE_ROWS, *_CHIPS, *_VECTOR)}
"""The table, by mnemonic."""

OPS: dict[str, tuple[InstructionRow, str]] = {
    row.named(variant): (row, variant) for row in ROWS.values() for variant in row.variants
}
"""Every op as `QueueInst.op` has it (`CMP.lt`), with its row and variant."""

CODES: dict[int, str] = {row.code + i: row.named(variant) for row in ROWS.values() for i, variant in enumerate(row.variants)}
"""Opcode -> op."""


@cache
def opcode(op: str) -> int:
    """The code of an op in words. Raises KeyError for what is none."""
    row, variant = OPS[op]
    return row.code + row.variants.index(variant)


@cache
def latency_key(op: str, dtype: str) -> str:
    """Which of the machine's delays an op has on elements of `dtype`; "" for those that have no effect of their own."""
    row, _ = OPS[op]
    return "multiply_int8" if row.name == "MAC" and dtype == "int8" else row.latency


@cache
def result_type(op: str, dtype: str) -> str:
    """The element type of an ALU row's result."""
    row, variant = OPS[op]
    if row.name == "CMP":
        return "int1"
    return variant if row.name == "CVT" and variant in TYPES else dtype


def is_vector(op: str) -> bool:
    """Whether an op is one of the ALUs'."""
    return bool(OPS[op][0].operands)

