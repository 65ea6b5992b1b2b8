"""The modifiers of LLVM's syntax as a table: name, how a value is written, and back. Parser and printer both read it.

    clamp                    flag     1
    offset:16                number   16 (row_mask:0xf: hex)
    op_sel:[0,1,0]           bits     (0, 1, 0)
    dst_sel:BYTE_1, mul:2    choice   the value of the field, named by its whole text

The values are those of the fields (CDNA3 ISA, chapter "Microcode formats"); the words LLVM's (`AMDGPUModifierSyntax.rst`).
`neg`, `abs` and `sext` stand at the operands (`-|v1|`, `sext(v1)`), not behind them: kind "inline".
"""

from __future__ import annotations

from tilefw_amd.isa.model import Modifier, Spelling
from tilefw_amd.isa.text import immediates


class Swizzle(Spelling):
    """The offset of DS_SWIZZLE_B32 by the name of its pattern, as `immediates` writes it."""

    def text(self, value: Modifier) -> str:
        assert isinstance(value, int)
        return f"{self.word}:{immediates.swizzle(value)}"


class TruthTable(Spelling):
    """The table of V_BITOP3, in decimal up to ten as LLVM prints it (`AMDGPUInstPrinter.cpp`, printBitOp3)."""

    def text(self, value: Modifier) -> str:
        assert isinstance(value, int)
        return f"{self.word}:{value}" if value <= 10 else f"{self.word}:{value:#x}"


class ScaleByte(Spelling):
    """A bit of the number of a scale's byte, for A and for B: text has a third, of no operand, which is 0."""

    def text(self, value: Modifier) -> str:
        assert isinstance(value, tuple)
        return super().text((*value, 0))

    def value(self, text: str) -> Modifier | None:
        found = super().value(text)
        return found[:2] if isinstance(found, tuple) and found[2:] in ((), (0,)) else None


# Element types and number formats of MTBUF by value (LLVM, `SIDefines.h`, `MTBUFFormat`): four bits and three above them.
DATA_FORMATS = tuple(
    f"BUF_DATA_FORMAT_{name}" for name in (
        "INVALID", "8", "16", "8_8", "32", "16_16", "10_11_11", "11_11_10", "10_10_10_2", "2_10_10_10", "8_8_8_8", "32_32",
        "16_16_16_16", "32_32_32", "32_32_32_32", "RESERVED_15",
    )
)
NUMBER_FORMATS = tuple(
    f"BUF_NUM_FORMAT_{name}" for name in ("UNORM", "SNORM", "USCALED", "SSCALED", "UINT", "SINT", "RESERVED_6", "FLOAT")
)
DATA_FORMAT_DEFAULT = 1


class TypedFormat(Spelling):
    """The format of a typed buffer access: `format:[BUF_DATA_FORMAT_32,BUF_NUM_FORMAT_FLOAT]`, without a part that is 8 bits or
    unsigned normalised; or its seven bits as a number."""

    def text(self, value: Modifier) -> str:
        assert isinstance(value, int)
        data, number = value % len(DATA_FORMATS), value // len(DATA_FORMATS)
        names = [DATA_FORMATS[data]] if data != DATA_FORMAT_DEFAULT else []
        return f"{self.word}:[{','.join([*names, NUMBER_FORMATS[number]] if number else names)}]"

    def value(self, text: str) -> Modifier | None:
        word, colon, rest = text.partition(":")
        if word != self.word or not colon:
            return None
        if not rest.startswith("["):
            return super().value(text)
        names = [name.strip() for name in rest[1:-1].split(",")]
        data = [DATA_FORMATS.index(name) for name in names if name in DATA_FORMATS]
        number = [NUMBER_FORMATS.index(name) for name in names if name in NUMBER_FORMATS]
        if not names or len(data) > 1 or len(number) > 1 or len(data) + len(number) != len(names):
            return None
        return (data or [DATA_FORMAT_DEFAULT])[0] + len(DATA_FORMATS) * (number or [0])[0]


# What SDWA selects of a register, as `dst_sel`, `src0_sel` and `src1_sel` hold it, and what becomes of the unselected bits.
SELECTS = ("BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD")
DWORD = SELECTS.index("DWORD")
UNUSED = ("UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE")

# DPP controls by value (CDNA3 ISA, section "DPP"): quad_perm holds two bits a lane below these.
ROW_SHL, ROW_SHR, ROW_ROR = 0x100, 0x110, 0x120
WAVE_SHL, WAVE_ROL, WAVE_SHR, WAVE_ROR = 0x130, 0x134, 0x138, 0x13C
ROW_MIRROR, ROW_HALF_MIRROR, ROW_BCAST15, ROW_BCAST31, ROW_NEWBCAST = 0x140, 0x141, 0x142, 0x143, 0x150


def _dpp_controls() -> dict[int, str]:
    found = {n: f"quad_perm:[{n & 3},{n >> 2 & 3},{n >> 4 & 3},{n >> 6}]" for n in range(256)}
    for base, word in ((ROW_SHL, "row_shl"), (ROW_SHR, "row_shr"), (ROW_ROR, "row_ror")):
        found |= {base + n: f"{word}:{n}" for n in range(1, 16)}
    found |= {WAVE_SHL: "wave_shl:1", WAVE_ROL: "wave_rol:1", WAVE_SHR: "wave_shr:1", WAVE_ROR: "wave_ror:1"}
    found |= {ROW_MIRROR: "row_mirror", ROW_HALF_MIRROR: "row_half_mirror"}
    found |= {ROW_BCAST15: "row_bcast:15", ROW_BCAST31: "row_bcast:31"}
    return found | {ROW_NEWBCAST + n: f"row_newbcast:{n}" for n in range(16)}


_SCALE_BYTES = (
    "op_sel + 2 op_sel_hi is the byte, 0 to 3, of the scales of A and of B: op_sel:[1,0,0] op_sel_hi:[0,1,0] are the bytes 1 and 2"
)


def _choices(word: str, names: tuple[str, ...]) -> Spelling:
    return Spelling("choice", word, {value: f"{word}:{name}" for value, name in enumerate(names)})


def _table() -> dict[str, Spelling]:
    flags = {word: Spelling("flag", word) for word in ("clamp", "gds", "sc0", "nt", "sc1", "glc", "lds", "offen", "idxen")}
    numbers = {word: Spelling("number", word) for word in ("offset", "offset0", "offset1", "cbsz", "abid", "blgp")}
    bits = {word: Spelling("bits", word) for word in ("op_sel", "op_sel_hi", "neg_lo", "neg_hi")}
    inline = {word: Spelling("inline", word) for word in ("neg", "abs", "sext")}
    sdwa = {word: _choices(word, SELECTS) for word in ("dst_sel", "src0_sel", "src1_sel")}
    return flags | numbers | bits | inline | sdwa | {
        "format": TypedFormat("number", "format"),
        "offset12": Spelling("number", "offset"),
        "swizzle": Swizzle("number", "offset"),
        "smem_offset": Spelling("hex", "offset"),
        "smem_offset20": Spelling("hex", "offset"),
        "matrix_neg": Spelling("bits", "neg"),  # of the f64 matrix instructions, in the bits of blgp
        "scale_op_sel": ScaleByte("bits", "op_sel", values=_SCALE_BYTES),
        "scale_op_sel_hi": ScaleByte("bits", "op_sel_hi", values=_SCALE_BYTES),
        "omod": Spelling("choice", "omod", {1: "mul:2", 2: "mul:4", 3: "div:2"}),
        "dst_unused": _choices("dst_unused", UNUSED),
        "dpp_ctrl": Spelling("choice", "dpp_ctrl", _dpp_controls()),
        "wide_dpp_ctrl": Spelling(
            "choice", "dpp_ctrl", {value: text for value, text in _dpp_controls().items() if value >= ROW_NEWBCAST}
        ),  # 64-bit operands have no other control
        "row_mask": Spelling("hex", "row_mask"),
        "bank_mask": Spelling("hex", "bank_mask"),
        "bound_ctrl": Spelling("choice", "bound_ctrl", {1: "bound_ctrl:1"}),
        "swap_bound_ctrl": Spelling("choice", "bound_ctrl", {1: "bound_ctrl:1"}),
        "fi": Spelling("choice", "fi", {1: "fi:1"}),
        "bitop3": TruthTable("number", "bitop3"),
    }


MODIFIERS: dict[str, Spelling] = _table()
