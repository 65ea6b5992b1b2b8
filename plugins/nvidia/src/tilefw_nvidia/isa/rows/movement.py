"""Moves, packs and addresses (PTX ISA, "Data Movement and Conversion Instructions")."""

from __future__ import annotations

from tilefw_nvidia.isa.model import Chapter, Facts

CHAPTER = Chapter()
form = CHAPTER.form

SECTION = "Data Movement and Conversion"
SPACES = "global shared local const param shared::cta"
SPACE_NEEDS = {"param": ("7.7", 70), "const": ("3.1", 20), "shared::cta": ("7.8", 30)}


def space_of(word: str) -> str:
    """The algebra's name of a written state space; none means a generic address."""
    return "cluster" if word == "shared::cluster" else word.partition("::")[0] or "generic"


def _move(m):
    """d = a: a register, a constant, the address of a variable, or a special register."""
    return lambda lanes, a: a


form("mov.type d, a", type="pred b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64", unit="alu", section=f"{SECTION}: mov")(_move)
form("mov.b128 d, a", unit="alu", section=f"{SECTION}: mov", ptx="8.3", since=70)(_move)


@form("mov.type d, a{}", type="b16 b32 b64 b128", unit="alu", section=f"{SECTION}: mov", needs={"b128": ("8.3", 70)})
def pack(m):
    """d = the registers of the vector side by side, the first lowest."""
    return lambda lanes, *parts: lanes.join(parts)


@form("mov.type d{}, a", type="b16 b32 b64 b128", unit="alu", section=f"{SECTION}: mov", needs={"b128": ("8.3", 70)})
def unpack(m):
    """The parts of a, the lowest to the first register of the vector."""
    bits = m.type_of().bits // m.pieces
    return lambda lanes, a: lanes.split(a, bits)


CVTA: Facts = {
    "space": SPACES, "type": "u32 u64", "unit": "alu", "section": f"{SECTION}: cvta", "ptx": "2.0", "since": 20,
    "needs": SPACE_NEEDS, "refuse": lambda m: "addresses have 64 bits" if m.type == "u32" else "",
}


@form("cvta.space.type d, a", **CVTA)
def cvta(m):
    """A generic address from one of the space."""
    space = space_of(m.space)
    return lambda lanes, a: lanes.to_generic(a, space)


@form("cvta.to.space.type d, a", **CVTA)
def cvta_to(m):
    """An address of the space from a generic one."""
    space = space_of(m.space)
    return lambda lanes, a: lanes.from_generic(a, space)


@form("isspacep.space d:pred, a:b64", space=SPACES,
      unit="alu", section=f"{SECTION}: isspacep", ptx="2.0", since=20, needs=SPACE_NEEDS)
def isspacep(m):
    """Whether a generic address lies in the space."""
    space = space_of(m.space)
    return lambda lanes, a: lanes.is_space(a, space)
