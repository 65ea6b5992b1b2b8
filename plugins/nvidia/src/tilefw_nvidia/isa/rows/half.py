"""Arithmetic of f16, bf16 and their packs (PTX ISA, "Half Precision Floating-Point Instructions")."""

from __future__ import annotations

from tilefw_nvidia.isa.model import Chapter, Facts
from tilefw_nvidia.isa.rows.floating import EXTREMES, extreme
from tilefw_nvidia.isa.rows.packed import elementwise

CHAPTER = Chapter()
form = CHAPTER.form

F16 = "f16 f16x2"
BF16 = "bf16 bf16x2"
SECTION = "Half Precision Floating-Point"


def _two_operands(primitive: str):
    def build(m):
        """The sum, difference or product, rounded once, in each element."""
        kind, ftz, sat = m.type_of(), bool(m.ftz), bool(m.sat)
        return elementwise(lambda lanes, a, b: getattr(lanes, primitive)(a, b, kind.format, "rn", ftz, sat), kind.lanes > 1)

    return build


for _name in ("add", "sub", "mul"):
    form(f"{_name}{{.rn}}{{.ftz}}{{.sat}}.type d, a, b", type=F16, unit="fma", section=f"{SECTION}: {_name}", ptx="4.2", since=53)(
        _two_operands(f"f{_name}")
    )
    form(f"{_name}{{.rn}}.type d, a, b", type=BF16, unit="fma", section=f"{SECTION}: {_name}", ptx="7.8", since=90)(
        _two_operands(f"f{_name}")
    )


def _fused(m):
    """a * b + c, rounded once, in each element; `.relu` clamps negative results to 0, NaN to the canonical NaN."""
    kind, ftz, sat = m.type_of(), bool(m.ftz), bool(m.sat)

    def one(lanes, a, b, c):
        result = lanes.ffma(a, b, c, kind.format, "rn", ftz, sat)
        return lanes.fmax(result, lanes.const(0, 16), kind.format, True) if m.relu else result

    return elementwise(one, kind.lanes > 1)


form("fma.rn{.ftz}{.sat}.type d, a, b, c", type=F16, unit="fma", section=f"{SECTION}: fma", ptx="4.2", since=53)(_fused)
form("fma.rn{.ftz}.relu.type d, a, b, c", type=F16, unit="fma", section=f"{SECTION}: fma", ptx="7.0", since=80)(_fused)
form("fma.rn{.relu}.type d, a, b, c", type=BF16, unit="fma", section=f"{SECTION}: fma", ptx="7.0", since=80)(_fused)


def _sign(primitive: str):
    def build(m):
        """The sign flipped or cleared, in each element."""
        kind, ftz = m.type_of(), bool(m.ftz)
        return elementwise(lambda lanes, a: getattr(lanes, primitive)(a, kind.format, ftz), kind.lanes > 1)

    return build


for _name, _primitive, _ptx in (("neg", "fneg", "6.0"), ("abs", "fabs", "6.5")):
    form(f"{_name}{{.ftz}}.type d, a", type=F16, unit="alu", section=f"{SECTION}: {_name}", ptx=_ptx, since=53)(_sign(_primitive))
    form(f"{_name}.type d, a", type=BF16, unit="alu", section=f"{SECTION}: {_name}", ptx="7.0", since=80)(_sign(_primitive))


def _extreme(primitive: str):
    def build(m):
        """The smaller or larger, in each element; the number wins over NaN, or NaN with .NaN."""
        kind = m.type_of()
        return elementwise(extreme(primitive, kind.format, bool(m.NaN), bool(m.ftz), bool(m.xorsign)), kind.lanes > 1)

    return build


for _name in ("min", "max"):
    _facts: Facts = EXTREMES | {"unit": "alu", "section": f"{SECTION}: {_name}", "ptx": "7.0", "since": 80}
    form(f"{_name}{{.ftz}}{{.NaN}}{{.xorsign}}{{.abs}}.type d, a, b", type=F16, **_facts)(_extreme(f"f{_name}"))
    form(f"{_name}{{.NaN}}{{.xorsign}}{{.abs}}.type d, a, b", type=BF16, **_facts)(_extreme(f"f{_name}"))
