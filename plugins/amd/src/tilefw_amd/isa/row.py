"""What a row of the table is: an instruction in LLVM's order of operands, its opcodes, its unit, and its meaning, once.

    @row("v_add_f32 d:f32, a:f32, b:f32", vop2=1, unit="valu", section="VOP2")
    def v_add_f32(m):
        '''d = a + b, rounded once.'''
        return lambda lanes, a, b: lanes.fadd(a, b, "f32", m.mode.round32, m.mode.flush32)

The function runs once for each decoded instruction, with its modifiers and the floating-point mode in force (`Modifiers`);
what it returns runs for each step, with the sources in the order of the pattern, each of the width of its type: a predicate for
`mask` and `scc`, a tuple of 32-bit values for types wider than 64 bits and for fragments (`f16x4`). It returns the results in
the order of the destinations. Source modifiers (neg, abs, op_sel, SDWA's selects, DPP's lanes) are applied before, float clamp
and omod after, by `binding`; rows of integers read `m.clamp` themselves. A type of packed elements (`f16x2`) in all operands
means that the function is the meaning for one element.

Opcodes: a keyword for each encoding, named as in the manual. `vop1`, `vop2` and `vopc` imply the VOP3 form at the manual's place
(0x140, 0x100, 0x000 further), SDWA and DPP; `without` names those that an instruction does not have.

Modifiers follow from the types: neg and abs come with each float source, clamp and omod with a float destination (of VOP3, and
what SDWA and DPP have of them). `modifiers` names what does not follow: `clamp` and `omod` of other destinations, `op_sel`.

Facts of vector rows: `trans`; `ignores exec` acts in all lanes; `keeps half`: a result of 16 bits leaves the other half of its
register as it was, where those of all other rows clear it. Of matrix rows: `xdl`, `sgemm` (f32) and `dgemm` (f64), as LLVM's
GCNHazardRecognizer.cpp sorts them. Of memory rows: `load`, `store`, `atomic`; where they access (`flat`, `global`, `scratch`,
`buffer`); `two offsets`, counted in elements or, with `dword64 stride`, in 64 of them; `returns`: with sc0 (glc) an atomic has
a result; `compares`: half of its data is compared; `lds dma`: to LDS without a register
(of `three dwords` or `four dwords`); `crossbar`: between lanes, without
memory; `swizzle`: the offset is a pattern; `no event`: no counter counts it; `any first register`: its tuples may begin at odd
registers too.

| pattern | means |
|---|---|
| `d:f32` | a destination, as its name begins with d: the encoding's next destination field |
| `a:f32` | a source: the encoding's next source field |
| `a:b32=vc` | only these kinds: v VGPR, a AGPR, s SGPR, c inline constant, l literal; else all that the field allows |
| `a:i16~f16` | constants are written as those of the other type |
| `+d:f32` | a destination that is read too: its old value is one more source, behind the others |
| `d:mask`, `c:mask` | a bit for each lane: VCC, written as such, in encodings that have no field for it |
| `[addr]` | the address of a memory encoding, as `addresses` computes it from its fields; the meaning gets its value(s) |
| `=n` | an immediate field, given to the function as `m.n` |
| `@t` | where a branch goes |
| `<scc`, `>scc` | an unwritten source or destination: scc, vcc, exec, m0 |
| `<pc` | an unwritten source: the address of the next instruction, 64 bits |

With `flow`, the function returns where execution goes, a `tilefw.api.sim` flow, or the pair of a flow and a meaning whose first
result is the branch's condition or the jump's address, the others the destinations'. The row of a wait returns a
`tilefw.api.sim.Wait` and has no meaning.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tilefw_amd.chips import Chip
from tilefw_amd.isa.types import TYPES, Type

Role = Literal["destination", "source", "address", "immediate", "target", "implicit source", "implicit destination"]

# Encodings by the name of the keyword that gives an opcode in them.
ENCODINGS = (
    "sop1", "sop2", "sopc", "sopk", "sopp", "smem", "vop1", "vop2", "vopc", "vop3", "vop3p", "mai", "mai_scaled", "ds", "flat",
    "mtbuf", "mubuf",
)
# Where the opcodes of the short encodings stand in VOP3 (CDNA3 ISA, section "VOP3A", notes of its opcode table).
VOP3_PLACE = {"vopc": 0x000, "vop2": 0x100, "vop1": 0x140}


@dataclass(frozen=True, slots=True)
class Mode:
    """The floating-point mode in force (MODE register: CDNA3 ISA, section "Mode register"): rounding of f32 and of f16 and f64 by
    the algebra's names, whether subnormals are flushed, what clamp makes of NaN (`dx10_clamp`: zero), and whether what overflows
    f16 or fp8 becomes the largest number (`fp16_overflow`)."""

    round32: Literal["rn", "rp", "rm", "rz"] = "rn"
    round64: Literal["rn", "rp", "rm", "rz"] = "rn"
    flush32: bool = False
    flush64: bool = False
    dx10_clamp: bool = True
    ieee: bool = True
    fp16_overflow: bool = False


class Modifiers(dict[str, Any]):
    """What was written of an instruction's modifiers and immediates, by LLVM's name; those that were not written are 0.

    `m.mode` is the floating-point mode; `m.given` has the names that were written; `m.form` is the encoding, `m.chip` the chip
    that executes it.
    """

    mode: Mode
    form: Any
    chip: Chip

    def __getattr__(self, name: str) -> Any:
        return self.get(name, 0)

    @property
    def given(self) -> frozenset[str]:
        return frozenset(self)


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand of the pattern; see the table above. `kinds` is "" where the encoding decides, `constants` None where they are
    those of `type`."""

    name: str
    role: Role
    type: Type | None = None
    kinds: str = ""
    read: bool = False
    constants: Type | None = None


def serves(chip: Chip, name: str, since: int, until: int | None, only: frozenset[str] = frozenset()) -> bool:
    """Whether the chip has what came with generation `since`, went after `until` (None: is there to this day) and asks for the
    features `only`, and was not made without it."""
    of_generation = since <= chip.generation and (until is None or chip.generation <= until)
    return of_generation and only <= chip.features and name not in chip.removed


@dataclass(frozen=True, slots=True)
class Row:
    """A base mnemonic, without the suffix of an encoding.

    `opcodes` maps an encoding to the opcode; `wave` says that it executes once for the wave, whatever EXEC holds; `flow` that
    `build` returns a flow. `passes` are those of a matrix instruction, of 4 cycles each. `facts` are what
    hazard rules and the simulator ask besides ("trans", "load", …). `aliases` are further names that LLVM takes.
    `mnemonic` is what text calls it: rows that differ in a modifier share one (`buffer_load_dword`, without and with `lds`).
    `fixed` are contents of fields that the row has by being itself; those that are modifiers are written (`cbsz:4`).
    The chips that have it are those of the generations `since` to `until` (None: to this day) with all the features of `only`.
    """

    name: str
    pattern: str
    operands: tuple[Operand, ...]
    opcodes: Mapping[str, int]
    unit: str
    section: str
    build: Callable[[Modifiers], Any]
    without: frozenset[str] = frozenset()
    modifiers: tuple[str, ...] = ()
    wave: bool = False
    flow: bool = False
    passes: int = 0
    facts: frozenset[str] = field(default_factory=frozenset)
    aliases: tuple[str, ...] = ()
    mnemonic: str = ""
    since: int = 0
    until: int | None = None
    only: frozenset[str] = frozenset()
    fixed: Mapping[str, int] = field(default_factory=dict)

    def serves(self, chip: Chip) -> bool:
        """Whether the chip has the instruction; one that was made without a mnemonic has none of its rows."""
        return serves(chip, self.name, self.since, self.until, self.only) and self.mnemonic not in chip.removed

    @property
    def doc(self) -> str:
        return (getattr(self.build, "func", self.build).__doc__ or "").strip()  # `func`: of a functools.partial

    @property
    def destinations(self) -> tuple[Operand, ...]:
        return tuple(o for o in self.operands if o.role == "destination")

    @property
    def sources(self) -> tuple[Operand, ...]:
        return tuple(o for o in self.operands if o.role == "source")


_OPERAND = re.compile(
    r"""(?:
      \[(?P<address>\w+)\]
    | =(?P<immediate>\w+)
    | @(?P<target>\w+)
    | (?P<way>[<>])(?P<implicit>scc|vcc|exec|m0|pc)
    | (?P<read>\+)?(?P<name>[a-z]\w*):(?P<type>\w+)(?:~(?P<written>\w+))?(?:=(?P<kinds>[vascl]+))?
    )$""",
    re.VERBOSE,
)

_IMPLICIT = {"scc": None, "vcc": "b64", "exec": "b64", "m0": "b32", "pc": "b64"}

RowFacts = dict[str, Any]
"""Arguments of `row` that several rows share."""
Opcodes = dict[str, Any]
"""An instruction's opcodes (integers) by encoding, as arguments of `row`."""



class Chapter:
    """The rows of one module, in its order. A name may have several rows for chips of different generations."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def row(
        self,
        pattern: str,
        *,
        unit: str,
        section: str,
        without: str = "",
        modifiers: str = "",
        wave: bool = False,
        flow: bool = False,
        passes: int = 0,
        facts: str = "",
        aliases: str = "",
        mnemonic: str = "",
        since: int = 0,
        until: int | None = None,
        only: str = "",
        fixed: Mapping[str, int] | None = None,
        **opcodes: int,
    ) -> Callable[[Callable[[Modifiers], Any]], Callable[[Modifiers], Any]]:
        """Add a row. `section` is that of the ISA document of the generation that the row is `since`, or else of the first one: it
        has the opcode and the meaning. `modifiers` names those beyond its encodings' own; `facts` are phrases with commas between
        ("global, returns"); `only` are features of chips, with spaces between; `fixed` contents of fields."""

        def add(build: Callable[[Modifiers], Any]) -> Callable[[Modifiers], Any]:
            name, _, tail = pattern.partition(" ")
            unknown = set(opcodes) - set(ENCODINGS)
            if unknown or not opcodes:
                raise ValueError(f"{name}: no opcode, or {sorted(unknown)} are not encodings")
            operands = tuple(_operand(text.strip()) for text in tail.split(",")) if tail else ()
            self.rows.append(Row(
                name, pattern, operands, _implied(opcodes, without.split()), unit, section, build, frozenset(without.split()),
                tuple(modifiers.split()), wave, flow, passes,
                frozenset(fact.strip() for fact in facts.split(",") if fact.strip()), tuple(aliases.split()), mnemonic or name,
                since, until, frozenset(only.split()), dict(fixed or {}),
            ))
            return build

        return add


def _implied(opcodes: Mapping[str, int], without: list[str]) -> dict[str, int]:
    """The opcodes with the VOP3 form of a short encoding."""
    found = dict(opcodes)
    for short, place in VOP3_PLACE.items():
        if short in found and "vop3" not in found and "vop3" not in without:
            found["vop3"] = place + found[short]
    return found


def _operand(text: str) -> Operand:
    match = _OPERAND.match(text)
    if match is None:
        raise ValueError(f"{text!r} is not an operand pattern")
    if match["address"]:
        return Operand(match["address"], "address")
    if match["immediate"]:
        return Operand(match["immediate"], "immediate")
    if match["target"]:
        return Operand(match["target"], "target")
    if match["implicit"]:
        width = _IMPLICIT[match["implicit"]]
        role: Role = "implicit source" if match["way"] == "<" else "implicit destination"
        return Operand(match["implicit"], role, TYPES[width] if width else None)
    role = "destination" if match["name"].startswith("d") else "source"
    constants = TYPES[match["written"]] if match["written"] else None
    return Operand(match["name"], role, TYPES[match["type"]], match["kinds"] or "", bool(match["read"]), constants)
