"""The encodings of the family as data: fixed bits, opcode, fields, and the order in which operands and modifiers of text use them.

CDNA3 ISA, chapter "Microcode formats"; the cache bits sc0, nt and sc1, the second addressing bit of scratch (sve) and the bits
that choose accumulation registers after LLVM's `FLATInstructions.td`, `BUFInstructions.td`, `DSInstructions.td` and
`VOP3PInstructions.td`.
Bits are numbered through all the words of an encoding, the first word's lowest being 0.
"""

from __future__ import annotations

from collections.abc import Mapping

from tilefw_amd.isa.model import EncodingField, MicrocodeFormat, Pieces


def _prefix(bits: str, width: int = 32) -> tuple[int, int]:
    """Mask and value of the highest bits of a word of `width` bits."""
    shift = width - len(bits)
    return ((1 << len(bits)) - 1) << shift, int(bits, 2) << shift


def _bits(low: int, width: int, *, ninth: int = -1) -> Pieces:
    """A run of bits and, where `ninth` is given, one more bit above them."""
    return ((low, width),) if ninth < 0 else ((low, width), (ninth, 1))


SDWA_MARK, DPP_MARK = 249, 250  # in src0 of VOP1, VOP2, VOPC: a second word says more

_SDST = EncodingField(_bits(16, 7), "scalar", "s")
_SSRC0 = EncodingField(_bits(0, 8), "scalar source", "scl")
_SSRC1 = EncodingField(_bits(8, 8), "scalar source", "scl")
_SIMM16 = EncodingField(_bits(0, 16))

_SRC0 = EncodingField(_bits(0, 9), "source", "vscl")
_VSRC1 = EncodingField(_bits(9, 8), "vector", "v")
_VDST = EncodingField(_bits(17, 8), "vector", "v")
_VDST_SCALAR = EncodingField(_bits(17, 8), "scalar destination", "s")

_VOP3 = {
    "vdst": EncodingField(_bits(0, 8), "vector", "v"),
    "sdst": EncodingField(_bits(0, 8), "scalar destination", "s"),
    "src0": EncodingField(_bits(32, 9), "source", "vsc"),
    "src1": EncodingField(_bits(41, 9), "source", "vsc"),
    "src2": EncodingField(_bits(50, 9), "source", "vsc"),
    "abs": EncodingField(((8, 1), (9, 1), (10, 1))),
    "op_sel": EncodingField(((11, 1), (12, 1), (13, 1), (14, 1))),
    "clamp": EncodingField(_bits(15, 1)),
    "omod": EncodingField(_bits(59, 2)),
    "neg": EncodingField(((61, 1), (62, 1), (63, 1))),
    # Of few instructions, in bits of the others (LLVM, `VOP3Instructions.td`, `VOP1Instructions.td`).
    "bitop3": EncodingField(((61, 3), (8, 3), (59, 2))),
    "fi": EncodingField(_bits(11, 1)),
    "swap_bound_ctrl": EncodingField(_bits(12, 1)),
}
# The second result stands where others have abs and op_sel.
_VOP3B = {
    **{name: f for name, f in _VOP3.items() if name not in ("abs", "op_sel", "bitop3", "fi", "swap_bound_ctrl")},
    "sdst": EncodingField(_bits(8, 7), "scalar", "s"),
}
_VOP3P = {
    "vdst": _VOP3["vdst"],
    "src0": _VOP3["src0"],
    "src1": _VOP3["src1"],
    "src2": _VOP3["src2"],
    "neg_hi": EncodingField(((8, 1), (9, 1), (10, 1))),
    "op_sel": EncodingField(((11, 1), (12, 1), (13, 1))),
    "op_sel_hi": EncodingField(((59, 1), (60, 1), (14, 1))),
    "clamp": EncodingField(_bits(15, 1)),
    "neg_lo": EncodingField(((61, 1), (62, 1), (63, 1))),
    # Mixed precision has absolute value and sign of whole operands in the same bits.
    "abs": EncodingField(((8, 1), (9, 1), (10, 1))),
    "neg": EncodingField(((61, 1), (62, 1), (63, 1))),
}
_MAI = {
    "vdst": EncodingField(_bits(0, 8, ninth=15), "vector", "va"),
    "src0": EncodingField(_bits(32, 9, ninth=59), "accumulator source", "vasc"),
    "src1": EncodingField(_bits(41, 9, ninth=60), "accumulator source", "vasc"),
    "src2": EncodingField(_bits(50, 9, ninth=15), "accumulator source", "vasc"),
    "index": EncodingField(_bits(50, 9), "source", "v"),
    "cbsz": EncodingField(_bits(8, 3)),
    "abid": EncodingField(_bits(11, 4)),
    "blgp": EncodingField(_bits(61, 3)),
    "matrix_neg": EncodingField(((61, 1), (62, 1), (63, 1))),
}
_SECOND = 64  # bits of the half before
# The half that loads scales (LLVM, `VOP3PInstructions.td`, VOP3PX): op_sel and op_sel_hi choose a byte of each scale's register;
# the product behind it has a bit of abid set.
_MAI_SCALED = {
    **{
        name: EncodingField(tuple((low + _SECOND, width) for low, width in f.pieces), f.space, f.kinds)
        for name, f in _MAI.items() if name not in ("index", "matrix_neg")
    },
    "scale0": EncodingField(_bits(32, 9), "source", "v"),
    "scale1": EncodingField(_bits(41, 9), "source", "v"),
    "scale_op_sel": EncodingField(((11, 1), (12, 1))),
    "scale_op_sel_hi": EncodingField(((59, 1), (60, 1))),
    "product": EncodingField(_bits(_SECOND + 16, 16)),
}
_SDWA_MODIFIERS = {
    "dst_sel": EncodingField(_bits(40, 3)),
    "dst_unused": EncodingField(_bits(43, 2)),
    "clamp": EncodingField(_bits(45, 1)),
    "omod": EncodingField(_bits(46, 2)),
    "src0_sel": EncodingField(_bits(48, 3)),
    "src1_sel": EncodingField(_bits(56, 3)),
    "sext": EncodingField(((51, 1), (59, 1))),
    "neg": EncodingField(((52, 1), (60, 1))),
    "abs": EncodingField(((53, 1), (61, 1))),
}
_SDWA0 = EncodingField(_bits(32, 8, ninth=55), "sub-dword source", "vsc")
_SDWA1 = EncodingField(_bits(9, 8, ninth=63), "sub-dword source", "vsc")
_SDWA1_ABSENT = {"vdst": _VDST, "sdst": _VDST_SCALAR, "src0": _SDWA0, "s1": EncodingField(_bits(63, 1))}
_DPP = {
    "src0": EncodingField(_bits(32, 8), "vector", "v"),
    "dpp_ctrl": EncodingField(_bits(40, 9)),
    "bound_ctrl": EncodingField(_bits(51, 1)),
    "neg": EncodingField(((52, 1), (54, 1))),
    "abs": EncodingField(((53, 1), (55, 1))),
    "bank_mask": EncodingField(_bits(56, 4)),
    "row_mask": EncodingField(_bits(60, 4)),
}
_CACHE_FLAT = {"sc0": EncodingField(_bits(16, 1)), "nt": EncodingField(_bits(17, 1)), "sc1": EncodingField(_bits(25, 1))}
_FLAT = {
    "vdst": EncodingField(_bits(56, 8, ninth=55), "vector", "va"),
    "vdata": EncodingField(_bits(40, 8, ninth=55), "vector", "va"),
    "vaddr": EncodingField(_bits(32, 8), "vector", "v"),
    "saddr": EncodingField(_bits(48, 7), "scalar address", "so"),
    "segment": EncodingField(_bits(14, 2)),
    "sve": EncodingField(_bits(13, 1)),
    "offset": EncodingField(_bits(0, 13)),
    "offset12": EncodingField(_bits(0, 12)),
    "offset_sign": EncodingField(_bits(12, 1)),
    "acc": EncodingField(_bits(55, 1)),
    **_CACHE_FLAT,
}
_MUBUF = {
    "vdata": EncodingField(_bits(40, 8, ninth=55), "vector", "va"),
    "vaddr": EncodingField(_bits(32, 8), "vector", "v"),
    "srsrc": EncodingField(_bits(48, 5), "scalar quad", "s"),
    "soffset": EncodingField(_bits(56, 8), "scalar source", "sc"),
    "offset": EncodingField(_bits(0, 12)),
    "offen": EncodingField(_bits(12, 1)),
    "idxen": EncodingField(_bits(13, 1)),
    "sc0": EncodingField(_bits(14, 1)),
    "sc1": EncodingField(_bits(15, 1)),
    "lds": EncodingField(_bits(16, 1)),
    "acc": EncodingField(_bits(55, 1)),
    "nt": EncodingField(_bits(17, 1)),
}
# The opcode takes the bits that MUBUF has sc1 and lds in; sc1 has moved (LLVM, `BUFInstructions.td`).
_MTBUF = {
    **{name: _MUBUF[name] for name in ("vdata", "vaddr", "srsrc", "soffset", "offset", "offen", "idxen", "sc0", "acc")},
    "format": EncodingField(_bits(19, 7)),
    "sc1": EncodingField(_bits(53, 1)),
    "nt": EncodingField(_bits(54, 1)),
}
_DS = {
    "vdst": EncodingField(_bits(56, 8, ninth=25), "vector", "va"),
    "addr": EncodingField(_bits(32, 8), "vector", "v"),
    "data0": EncodingField(_bits(40, 8, ninth=25), "vector", "va"),
    "data1": EncodingField(_bits(48, 8, ninth=25), "vector", "va"),
    "offset": EncodingField(_bits(0, 16)),
    "offset0": EncodingField(_bits(0, 8)),
    "offset1": EncodingField(_bits(8, 8)),
    "gds": EncodingField(_bits(16, 1)),
}
_SMEM = {
    "sdata": EncodingField(_bits(6, 7), "scalar data", "s"),
    "sbase": EncodingField(_bits(0, 6), "scalar pair", "s"),
    "soffset": EncodingField(_bits(57, 7), "scalar", "s"),
    # Where no immediate is added, the immediate's bits hold the register.
    "soffset_low": EncodingField(_bits(32, 7), "scalar", "s"),
    "offset": EncodingField(_bits(32, 21)),
    "offset20": EncodingField(_bits(32, 20)),
    "offset_sign": EncodingField(_bits(52, 1)),
    "probe": EncodingField(_bits(6, 7)),
    "soffset_en": EncodingField(_bits(14, 1)),
    "imm": EncodingField(_bits(17, 1)),
    "glc": EncodingField(_bits(16, 1)),
}
_VOP1 = {"vdst": _VDST, "sdst": _VDST_SCALAR, "src0": _SRC0}
_VOP2 = {"vdst": _VDST, "src0": _SRC0, "src1": _VSRC1}
_VOPC = {"src0": _SRC0, "src1": _VSRC1}
_MARK = (1 << 9) - 1


def _second_word(name: str, base: str, mark: int, fields: Mapping[str, EncodingField]) -> MicrocodeFormat:
    """The format with a mark in src0 and a second word."""
    first = FORMATS[base]
    sources = tuple(f for f in first.sources if f in fields)
    return MicrocodeFormat(
        name, 8, first.mask | _MARK, first.value | mark, first.opcode, fields, first.destinations or ("sdst",), sources, group=base,
    )


FORMATS: dict[str, MicrocodeFormat] = {
    f.name: f
    for f in (
        MicrocodeFormat("sop1", 4, *_prefix("101111101"), (8, 8), {"sdst": _SDST, "ssrc0": _SSRC0}, ("sdst",), ("ssrc0",)),
        MicrocodeFormat(
            "sop2", 4, *_prefix("10"), (23, 7), {"sdst": _SDST, "ssrc0": _SSRC0, "ssrc1": _SSRC1}, ("sdst",), ("ssrc0", "ssrc1"),
        ),
        MicrocodeFormat("sopc", 4, *_prefix("101111110"), (16, 7), {"ssrc0": _SSRC0, "ssrc1": _SSRC1}, (), ("ssrc0", "ssrc1")),
        MicrocodeFormat("sopk", 4, *_prefix("1011"), (23, 5), {"sdst": _SDST, "simm16": _SIMM16}, ("sdst",), ("sdst",)),
        MicrocodeFormat("sopp", 4, *_prefix("101111111"), (16, 7), {"simm16": _SIMM16}),
        MicrocodeFormat("smem", 8, *_prefix("110000"), (18, 8), _SMEM, ("sdata",), ("sdata",)),
        MicrocodeFormat("vop1", 4, *_prefix("0111111"), (9, 8), _VOP1, ("vdst",), ("src0",)),
        MicrocodeFormat("vop2", 4, *_prefix("0"), (25, 6), _VOP2, ("vdst",), ("src0", "src1")),
        MicrocodeFormat("vopc", 4, *_prefix("0111110"), (17, 8), _VOPC, (), ("src0", "src1")),
        MicrocodeFormat("vop3", 8, *_prefix("110100"), (16, 10), _VOP3, ("vdst",), ("src0", "src1", "src2")),
        MicrocodeFormat(
            "vop3b", 8, *_prefix("110100"), (16, 10), _VOP3B, ("vdst", "sdst"),
            ("src0", "src1", "src2"), group="vop3",
        ),
        MicrocodeFormat("vop3p", 8, *_prefix("110100111"), (16, 7), _VOP3P, ("vdst",), ("src0", "src1", "src2")),
        MicrocodeFormat("mai", 8, *_prefix("110100111"), (16, 7), _MAI, ("vdst",), ("src0", "src1", "src2"), group="vop3p"),
        MicrocodeFormat(
            "mai_scaled", 16, *_prefix("110100111"), (16, 7), _MAI_SCALED, ("vdst",),
            ("src0", "src1", "src2", "scale0", "scale1"), group="vop3p",
        ),
        MicrocodeFormat("ds", 8, *_prefix("110110"), (17, 8), _DS, ("vdst",), ("data0", "data1")),
        MicrocodeFormat("flat", 8, *_prefix("110111"), (18, 7), _FLAT, ("vdst",), ("vdata",)),
        MicrocodeFormat("mtbuf", 8, *_prefix("111010"), (15, 4), _MTBUF, ("vdata",), ("vdata",)),
        MicrocodeFormat("mubuf", 8, *_prefix("111000"), (18, 7), _MUBUF, ("vdata",), ("vdata",)),
    )
}
FORMATS |= {
    f.name: f
    for f in (
        _second_word("vop1_sdwa", "vop1", SDWA_MARK, _SDWA1_ABSENT | _SDWA_MODIFIERS),
        _second_word("vop2_sdwa", "vop2", SDWA_MARK, {"vdst": _VDST, "src0": _SDWA0, "src1": _SDWA1} | _SDWA_MODIFIERS),
        _second_word(
            "vopc_sdwa", "vopc", SDWA_MARK,
            {"sdst": EncodingField(_bits(40, 7, ninth=47), "sub-dword mask", "s"), "src0": _SDWA0, "src1": _SDWA1} | {
                name: _SDWA_MODIFIERS[name] for name in ("src0_sel", "src1_sel", "sext", "neg", "abs")
            },
        ),
        _second_word("vop1_dpp", "vop1", DPP_MARK, {"vdst": _VDST} | _DPP),
        _second_word("vop2_dpp", "vop2", DPP_MARK, {"vdst": _VDST, "src1": _VSRC1} | _DPP),
    )
}
