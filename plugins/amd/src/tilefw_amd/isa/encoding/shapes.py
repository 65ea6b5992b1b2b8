"""The ways to write each encoding: suffix, what `[addr]` stands for, fixed bits, and modifiers in the order LLVM prints them.

Sources: LLVM's `FLATInstructions.td` (modes off, saddr, ST, SVS), `BUFInstructions.td` (off, offen, idxen, bothen),
`SMInstructions.td` (imm, sgpr, sgpr_imm), `VOP*Instructions.td` (the suffixes); CDNA3 ISA, chapter "Microcode formats".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tilefw_amd.isa.row import Row


@dataclass(frozen=True, slots=True)
class AddressPart:
    """An operand that `[addr]` stands for: a field, or without one only the word `off`.

    `number` is how an immediate is written.
    """

    name: str
    field: str = ""
    registers: int = 1
    kinds: str = ""
    number: str = ""
    signed: bool = False


@dataclass(frozen=True, slots=True)
class EncodingSyntax:
    """One way to write an encoding.

    `short` is the name by which a row's `without` knows it. `place` and `tail` are the parts of an address. `bits` are contents of
    fields that make this shape; `fixed` are those that text shows as modifiers. `facts`: the row has this fact ("!": lacks it).
    `no_destination`: a destination is neither written nor encoded. `zero` are fields that must be 0 where no operand is in them
    (those of other formats are not looked at).
    """

    name: str
    format: str
    short: str = ""
    suffix: str = ""
    modifiers: tuple[str, ...] = ()
    place: tuple[AddressPart, ...] = ()
    tail: tuple[AddressPart, ...] = ()
    bits: Mapping[str, int] = field(default_factory=dict)
    fixed: Mapping[str, int] = field(default_factory=dict)
    facts: tuple[str, ...] = ()
    addressed: bool | None = None  # whether the row has an address; None: either
    no_destination: bool = False
    zero: tuple[str, ...] = ()

    def serves(self, row: Row) -> bool:
        has_address = any(o.role == "address" for o in row.operands)
        if self.short in row.without or (self.addressed is not None and self.addressed != has_address):
            return False
        return all((fact[1:] not in row.facts) if fact[0] == "!" else (fact in row.facts) for fact in self.facts)


_FLAT_MODIFIERS = ("offset", "sc0", "nt", "sc1")
_OFF = AddressPart("saddr", kinds="o")
_SADDR = AddressPart("saddr", "saddr", 2)


def _returning(shapes: tuple[EncodingSyntax, ...]) -> tuple[EncodingSyntax, ...]:
    """Of atomics that can give the old value back: with sc0 they do, without it they have no destination."""
    found: list[EncodingSyntax] = []
    for s in shapes:
        common = (s.name, s.format, s.short, s.suffix)
        rest = (s.place, s.tail)
        found += [
            EncodingSyntax(*common, s.modifiers, *rest, s.bits, s.fixed, (*s.facts, "!returns"), s.addressed, zero=s.zero),
            *(
                EncodingSyntax(
                    f"{s.name}_rtn" if sc0 else s.name, *common[1:], s.modifiers, *rest,
                    {**s.bits, "sc0": sc0}, {**s.fixed, "sc0": sc0},
                    (*s.facts, "returns"), s.addressed, not sc0, s.zero,
                )
                for sc0 in (1, 0)
            ),
        ]
    return tuple(found)


def _flat() -> tuple[EncodingSyntax, ...]:
    wide, narrow, none = AddressPart("vaddr", "vaddr", 2), AddressPart("vaddr", "vaddr"), AddressPart("vaddr", kinds="o")
    scratch_base = AddressPart("saddr", "saddr")
    off = {"saddr": 127}
    glob, scratch = {"segment": 2, "sve": 0}, {"segment": 1}
    flat = {"segment": 0, "sve": 0, "saddr": 0, "offset_sign": 0}

    def shape(name: str, fact: str, vector: AddressPart, tail: tuple[AddressPart, ...], bits: dict[str, int]) -> EncodingSyntax:
        modifiers = ("offset12" if fact == "flat" else "offset", *_FLAT_MODIFIERS[1:])
        return EncodingSyntax(name, "flat", "", "", modifiers, (vector,), tail, bits, facts=(fact,), zero=("acc",))

    return _returning(
        (
            shape("flat", "flat", wide, (), flat),
            shape("global", "global", wide, (_OFF,), glob | off),
            shape("global_saddr", "global", narrow, (_SADDR,), glob),
            shape("scratch", "scratch", narrow, (_OFF,), scratch | {"sve": 1} | off),
            shape("scratch_svs", "scratch", narrow, (scratch_base,), scratch | {"sve": 1}),
            shape("scratch_st", "scratch", none, (_OFF,), scratch | {"sve": 0} | off),
            shape("scratch_saddr", "scratch", none, (scratch_base,), scratch | {"sve": 0}),
        )
    )


def _buffer_addresses(format: str) -> dict[str, tuple[tuple[AddressPart, ...], dict[str, int]]]:
    """By the shape's name: where a lane's part of a buffer address comes from, and the bits that say so."""
    rest = (AddressPart("srsrc", "srsrc", 4), AddressPart("soffset", "soffset"))
    return {
        format: ((AddressPart("vaddr", kinds="o"), *rest), {"idxen": 0, "offen": 0}),
        f"{format}_offen": ((AddressPart("vaddr", "vaddr"), *rest), {"idxen": 0, "offen": 1}),
        f"{format}_idxen": ((AddressPart("vaddr", "vaddr"), *rest), {"idxen": 1, "offen": 0}),
        f"{format}_bothen": ((AddressPart("vaddr", "vaddr", 2), *rest), {"idxen": 1, "offen": 1}),
    }


def _mtbuf() -> tuple[EncodingSyntax, ...]:
    modifiers = ("format", "idxen", "offen", "offset", "sc0", "nt", "sc1")
    return tuple(
        EncodingSyntax(name, "mtbuf", "", "", modifiers, place, (), fixed, fixed, (), True)
        for name, (place, fixed) in _buffer_addresses("mtbuf").items()
    )


def _mubuf() -> tuple[EncodingSyntax, ...]:
    modifiers = ("idxen", "offen", "offset", "sc0", "nt", "sc1")
    plain = {"offen": 0, "idxen": 0, "lds": 0}
    found: list[EncodingSyntax] = [
        EncodingSyntax("mubuf_cache", "mubuf", modifiers=("sc0", "sc1"), bits=plain, addressed=False, zero=("acc",))
    ]
    for name, (place, fixed) in _buffer_addresses("mubuf").items():
        bits = fixed | {"lds": 0}
        # An atomic has one register for data and result: sc0 changes no operand.
        found.append(EncodingSyntax(name, "mubuf", "", "", modifiers, place, (), bits, fixed, ("!lds dma",), True))
        lds = (*modifiers, "lds")
        bits, fixed = bits | {"lds": 1}, fixed | {"lds": 1}
        found.append(
            EncodingSyntax(f"{name}_lds", "mubuf", "", "", lds, place, (), bits, fixed, ("lds dma",), True, True, ("acc",))
        )
    return tuple(found)


def _smem() -> tuple[EncodingSyntax, ...]:
    found = [EncodingSyntax("smem_plain", "smem", bits={"imm": 0}, addressed=False)]
    for fact, width in (("buffer", 4), ("!buffer", 2)):
        base = AddressPart("sbase", "sbase", width)
        of_buffer = fact == "buffer"  # their offset is not signed
        offset = "offset20" if of_buffer else "offset"
        immediate = AddressPart("offset", offset, number="optional hex", signed=not of_buffer)
        scalar = AddressPart("soffset", "soffset")
        positive = {"offset_sign": 0} if of_buffer else {}
        ways = {
            "smem_imm": ((base, immediate), ("glc",), {"imm": 1, "soffset_en": 0} | positive),
            "smem_sgpr": ((base, AddressPart("soffset", "soffset_low")), ("glc",), {"imm": 0, "soffset_en": 0}),
            "smem_sgpr_imm": ((base, scalar), (f"smem_{offset}", "glc"), {"imm": 1, "soffset_en": 1} | positive),
            "smem_soffset": ((base, scalar), ("glc",), {"imm": 0, "soffset_en": 1}),
        }
        found += [
            EncodingSyntax(name, "smem", "", "", modifiers, place, (), bits, facts=(fact,), addressed=True)
            for name, (place, modifiers, bits) in ways.items()
        ]
    return tuple(found)


def _short(name: str) -> tuple[EncodingSyntax, ...]:
    """VOP1, VOP2, VOPC with what a second word makes of them."""
    inline = ("neg", "abs")
    selects = ("dst_sel", "dst_unused", "src0_sel", "src1_sel") if name != "vopc" else ("src0_sel", "src1_sel")
    sdwa = EncodingSyntax(
        f"{name}_sdwa", f"{name}_sdwa", "sdwa", "_sdwa", (*inline, "sext", "clamp", "omod", *selects), zero=("s1",)
    )
    controls = ("dpp_ctrl", "wide_dpp_ctrl", "row_mask", "bank_mask", "bound_ctrl")
    dpp = EncodingSyntax(f"{name}_dpp", f"{name}_dpp", "dpp", "_dpp", (*inline, *controls))
    plain = EncodingSyntax(name, name, name, "_e32", zero=("vdst",))
    return (sdwa, plain) if name == "vopc" else (sdwa, dpp, plain)


_ADDR = (AddressPart("addr", "addr"),)


def _ds(name: str, modifiers: tuple[str, ...], *facts: str) -> EncodingSyntax:
    """The bit `gds` means nothing to this chip: LLVM ignores it but where an instruction never had it."""
    gds = ("gds",) if "no gds" in facts else ()
    return EncodingSyntax(
        name, "ds", modifiers=modifiers, place=_ADDR, facts=facts, zero=("addr", "data0", "data1", "vdst", "offset", *gds)
    )


_VOP3 = ("neg", "abs", "bitop3", "op_sel", "clamp", "omod", "swap_bound_ctrl", "fi")
SHAPES: dict[str, tuple[EncodingSyntax, ...]] = {
    **{name: (EncodingSyntax(name, name),) for name in ("sop1", "sop2", "sopc", "sopk")},
    "sopp": (EncodingSyntax("sopp", "sopp", zero=("simm16",)),),
    "smem": _smem(),
    "vop1": _short("vop1"),
    "vop2": _short("vop2"),
    "vopc": _short("vopc"),
    "vop3": (EncodingSyntax("vop3", "vop3", "vop3", "_e64", _VOP3, zero=("vdst",)),),
    "vop3p": (
        EncodingSyntax(
            "vop3p", "vop3p", modifiers=("op_sel", "op_sel_hi", "neg_lo", "neg_hi", "neg", "abs", "clamp"), zero=("vdst",)
        ),
    ),
    "mai": (EncodingSyntax("mai", "mai", modifiers=("cbsz", "abid", "blgp", "matrix_neg")),),
    "mai_scaled": (
        EncodingSyntax("mai_scaled", "mai_scaled", modifiers=("scale_op_sel", "scale_op_sel_hi", "cbsz", "blgp"), bits={"abid": 1}),
    ),
    "ds": (
        _ds("ds", ("offset",), "!two offsets", "!swizzle", "!no gds"),
        _ds("ds_without_gds", ("offset",), "no gds"),
        _ds("ds_two", ("offset0", "offset1"), "two offsets"),
        _ds("ds_swizzle", ("swizzle",), "swizzle"),
    ),
    "flat": _flat(),
    "mtbuf": _mtbuf(),
    "mubuf": _mubuf(),
}
