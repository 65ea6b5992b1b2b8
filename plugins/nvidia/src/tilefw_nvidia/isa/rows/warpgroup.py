"""Matrix products of four warps (PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions": wgmma).

The unit works by itself: groups of products are committed and waited for. The accumulators are those of mma.sync m16n8, eight
columns after eight, and each warp has 16 of the 64 rows.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilefw.api.sim import GroupProduct, Issue, Register, Wait
from tilefw_nvidia.chips import Chip
from tilefw_nvidia.chips.versions import WARPGROUP_TARGETS
from tilefw_nvidia.isa.meaning.descriptors import SharedTile
from tilefw_nvidia.isa.meaning.fragments import accumulator, group_accumulation, operand_a
from tilefw_nvidia.isa.model import Chapter, Facts, Modifiers
from tilefw_nvidia.isa.types import FORMATS

CHAPTER = Chapter()
form = CHAPTER.form

SECTION = "Asynchronous Warpgroup Level Matrix Instructions"
QUEUE = "wgmma"
ROWS, WARPS = 64, 4
_FACTS: Facts = dict(unit="tensor", ptx="8.0", only=WARPGROUP_TARGETS, since=90)
_EVERY_N = range(8, 257, 8)
_INTEGER_N = (8, 16, 24, *range(32, 257, 16))
_FP8 = "e4m3 e5m2"


@dataclass(frozen=True, slots=True)
class GroupTypes:
    """The types of a group of forms: of the elements, how D's registers are declared, how many columns of D a register of the
    group's threads holds, and whether operands may lie with rows side by side."""

    modifiers: str
    k: int
    register: str
    columns_a_register: int
    elements: str
    columns: Sequence[int] = _EVERY_N
    transposes: bool = False
    choices: tuple[tuple[str, str], ...] = ()
    b_elements: str = ""
    version: str = "8.0"

    @property
    def bits(self) -> int:
        return 256 // self.k

    @property
    def integer(self) -> bool:
        return self.register == "s32"


TYPES = (
    GroupTypes(".f32.f16.f16", 16, "f32", 2, "f16", transposes=True),
    GroupTypes(".f16.f16.f16", 16, "b32", 4, "f16", transposes=True),
    GroupTypes(".f32.bf16.bf16", 16, "f32", 2, "bf16", transposes=True),
    GroupTypes(".f32.tf32.tf32", 8, "f32", 2, "tf32"),
    GroupTypes(".f32.atype.btype", 32, "f32", 2, "e4m3", choices=(("atype", _FP8), ("btype", _FP8))),
    GroupTypes(".f16.atype.btype", 32, "b32", 4, "e4m3", choices=(("atype", _FP8), ("btype", _FP8))),
    *(
        GroupTypes(f"{{.satfinite}}.s32.{a}.{b}", 32, "s32", 2, a, _INTEGER_N, b_elements=b, version="8.0" if a == b else "8.4")
        for a in ("s8", "u8") for b in ("s8", "u8")
    ),
)


def _n(m: Modifiers) -> int:
    return int(m.shape.removeprefix("m64n").partition("k")[0])


def _product(m: Modifiers, chip: Chip, types: GroupTypes, registers: bool) -> GroupProduct:
    for name in ("scale_a", "scale_b"):
        if name in m and m[name] not in (1, -1):
            raise ValueError(f"the scale of an operand is 1 or -1, not {m[name]}")
    for name in ("trans_a", "trans_b"):
        if name in m and m[name] not in (0, 1):
            raise ValueError(f"an operand's order is 0 (k-major) or 1, not {m[name]}")
    a, b = (FORMATS.get(name, name) for name in (m.atype or types.elements, m.btype or types.b_elements or types.elements))
    negated, n = m.get("scale_a") == -1, _n(m)
    left = operand_a(a, types.bits, 16, types.k) if registers else SharedTile(a, ROWS, m.get("trans_a", 0) == 0, negated)
    right = SharedTile(b, n, m.get("trans_b", 0) == 0, m.get("scale_b") == -1)
    sums = accumulator({"b32": "f16"}.get(types.register, types.register), 16)
    rounding = group_accumulation(m, types.elements, types.register, chip)
    return GroupProduct(WARPS, n, left, right, sums, rounding, registers and negated)


def _multiply(m: Modifiers, chip: Chip, types: GroupTypes, registers: bool):
    """D = A x B + D, or A x B where the predicate does not hold, over a warpgroup; B, and A unless registers hold it, in shared
    memory."""
    product = _product(m, chip, types, registers)
    end = _n(m) // types.columns_a_register
    a_end = end + (4 if registers else 1)

    def meaning(lanes, *values):
        return lanes.group_multiply(values[end:a_end], values[a_end], values[:end], values[a_end + 1], product)

    return meaning


def _issue(m: Modifiers, sources: Sequence[Any], types: GroupTypes, registers: bool) -> Facts:
    """The unit has D's registers, and those of A, until a wait; products of one shape follow each other without one."""
    end = _n(m) // types.columns_a_register
    held, read = (
        tuple(source.index for source in part if isinstance(source, Register))
        for part in (sources[:end], sources[end : end + 4] if registers else ())
    )
    order = f"{m.shape}.{types.register}"
    return {"gathers": WARPS, "issues": (Issue(QUEUE, order, held, settles=True, grouped=True, read=read),)}


def _forms() -> None:
    for types, registers in itertools.product(TYPES, (False, True)):
        scales = "" if types.integer else ", =scale_a, =scale_b"
        orders = "" if not types.transposes else ", =trans_b" if registers else ", =trans_a, =trans_b"
        operands = f"d&*held:{types.register}, {'a*4:b32' if registers else 'a:b64'}, b:b64, scale_d:pred{scales}{orders}"
        of_form = dict(types=types, registers=registers)
        facts: Facts = _FACTS | {"ptx": types.version} | dict(types.choices)
        form(
            f"wgmma.mma_async.sync.aligned.shape{types.modifiers} {operands}", section=f"{SECTION}: wgmma.mma_async",
            shape=" ".join(f"m64n{n}k{types.k}" for n in types.columns), of_chip=True,
            counts={"held": lambda m, each=types.columns_a_register: _n(m) // each},
            asynchrony=functools.partial(_issue, **of_form), **facts,
        )(functools.partial(_multiply, **of_form))


_forms()


@form("wgmma.fence.sync.aligned", section=f"{SECTION}: wgmma.fence", asynchrony=lambda m, _: {"fences": (QUEUE,)}, **_FACTS)
def fence(m):
    """The unit sees the registers as they are now."""
    return lambda lanes: None


@form("wgmma.commit_group.sync.aligned", section=f"{SECTION}: wgmma.commit_group", **_FACTS,
      asynchrony=lambda m, _: {"commits": (QUEUE,)})
def commit_group(m):
    """The warp's products since its last commit become its newest group."""
    return lambda lanes: None


@form("wgmma.wait_group.sync.aligned =n", section=f"{SECTION}: wgmma.wait_group", **_FACTS,
      asynchrony=lambda m, _: {"waits": Wait(((QUEUE, m.n),))})
def wait_group(m):
    """Until at most the n newest groups of the warp are unfinished."""
    if m.n < 0:
        raise ValueError(f"the number of groups cannot be negative: {m.n}")
    return lambda lanes: None
