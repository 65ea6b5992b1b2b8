"""The bounds of what an instruction gives as a few lines of Python: most that compute offsets are sums, products and shifts.

An instruction's meaning is run once, on names; what comes out is the factory of a step that has its bounds in local variables.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

from tilefw.sim.algebra.intervals import chosen, product
from tilefw.sim.program import Immediate, Source
from tilefw.sim.steps.careful import Step
from tilefw.sim.tracking.integers import TOLD, Held, merged

_TEMPLATE = """
def factory(step, careful, slots, to):
    {slots} = slots
    def whole(lanes, frame):
        registers, held, mask = frame.registers, frame.held, frame.{mask}
{reads}
{lines}
        if {low} < {least} or {high} >= {most}:
            if {high} - {low} >= {told}:
                return careful(lanes, frame)
            lanes.strayed = lanes.strayed or not {own}
        if mask is None:
            step(lanes, frame)
            held[to] = Held(registers[to], {low}, {high}, {own})
        else:
            before = frame.followed(to)
            step(lanes, frame)
            held[to] = merged(before, Held(registers[to], {low}, {high}, {own}), mask)
    return whole
"""
_READ = """\
        h = held.get(s{i})
        if h is None or h.value is not registers[s{i}]:
            h = frame.integers(s{i})
        if not h.known or (h.where is not None and h.where is not mask):
            return careful(lanes, frame)
        l{i}, h{i}, own{i} = h.low, h.high, h.leaf"""


class _Named(NamedTuple):
    """Bounds by their names, or as literals; `own`: whether it is a register's own number, as a condition. `lines` compute them."""

    low: str
    high: str
    own: str
    bits: int
    lines: tuple[str, ...] = ()


_Maybe = _Named | None
_LOW = re.compile(r"\bl(\d+)\b")


class _Lines:
    """An algebra whose values are names, None where there are no lines for them. Everything in it has 32 bits or less."""

    wave_size = 0

    def __init__(self) -> None:
        self._count = 0

    def __getattr__(self, name: str) -> Any:
        return _nothing

    def const(self, value: int, bits: int) -> _Maybe:
        return literal(value, bits)

    def add(self, a: _Maybe, b: _Maybe) -> _Maybe:
        return self._made("{0.low} + {1.low}, {0.high} + {1.high}", a, b)

    def sub(self, a: _Maybe, b: _Maybe) -> _Maybe:
        return self._made("{0.low} - {1.high}, {0.high} - {1.low}", a, b)

    def add_carry(self, a: _Maybe, b: _Maybe, carry: _Maybe) -> tuple[_Maybe, None]:
        return self.add(a, b) if _number(carry) == 0 else None, None

    def sub_borrow(self, a: _Maybe, b: _Maybe, borrow: _Maybe) -> tuple[_Maybe, None]:
        return self.sub(a, b) if _number(borrow) == 0 else None, None

    def mul(self, a: _Maybe, b: _Maybe) -> _Maybe:
        return self._made(
            "({0.low} * {1.low}, {0.high} * {1.high}) if {0.low} >= 0 <= {1.low} else "
            "product({0.low}, {0.high}, {1.low}, {1.high})", a, b,
        )

    def shl(self, a: _Maybe, amount: _Maybe) -> _Maybe:
        places = _number(amount)
        if a is None or places is None or not 0 <= places < a.bits:
            return None
        return self._made("{0.low} << {1.low}, {0.high} << {1.low}", a, amount)

    def and_(self, a: _Maybe, b: _Maybe) -> _Maybe:
        x, y = _number(a), _number(b)
        return None if a is None or x is None or y is None else literal(x & y, a.bits)

    def zero_extend(self, a: _Maybe, bits: int) -> _Maybe:
        return None if a is None else a._replace(bits=bits)

    sign_extend = truncate = zero_extend

    def split(self, a: _Maybe, bits: int) -> tuple[_Maybe, ...]:
        return (None, None) if a is None else (a._replace(bits=bits), *[None] * (a.bits // bits - 1))

    def select(self, p: object, a: _Maybe, b: _Maybe) -> _Maybe:
        made = self._made("chosen({0.low}, {0.high}, {0.own}, {1.low}, {1.high}, {1.own}, 1 << {0.bits})", a, b)
        return made if made is None or a is None or b is None else made._replace(own=f"({a.own} and {b.own})")

    def _made(self, text: str, a: _Maybe, b: _Maybe) -> _Maybe:
        if a is None or b is None:
            return None
        self._count += 1
        names = f"x{self._count}", f"y{self._count}"
        line = f"{names[0]}, {names[1]} = {text.format(a, b)}"
        return _Named(*names, "False", a.bits, (*dict.fromkeys((*a.lines, *b.lines)), line))


def _nothing(*_: Any, **__: Any) -> None:
    return None


def literal(value: int, bits: int) -> _Named:
    """A number with its sign."""
    number = str(((value + (1 << bits - 1)) % (1 << bits)) - (1 << bits - 1))
    return _Named(number, number, "True", bits)


def _number(a: _Maybe) -> int | None:
    """What a literal is; None for what has a name."""
    return int(a.low) if a is not None and a.low == a.high else None


def simple_step(
    step: Step, careful: Step, meaning: Callable[..., Any], sources: Sequence[Source], slots: Sequence[int], to: int,
    for_wave: bool, plain: tuple[int, int],
) -> Step | None:
    """A step after which the slot `to` stands for what the meaning gives; None where that takes more than lines. The `sources` are
    in `slots`. `careful` is the step for all that the lines leave out, `plain` bounds what needs no further look."""
    if any(operand.bits > 32 for operand in sources):
        return None
    named = [
        literal(operand.value, operand.bits) if isinstance(operand, Immediate)
        else _Named(f"l{i}", f"h{i}", f"own{i}", operand.bits)
        for i, operand in enumerate(sources)
    ]
    try:
        result = meaning(_Lines(), *named)
    except (TypeError, AttributeError, ValueError):  # it looks into what there are no lines for
        return None
    result = result[0] if isinstance(result, tuple) and not isinstance(result, _Named) else result
    if not isinstance(result, _Named) or not result.lines or result.bits != 32:
        return None
    read = tuple(sorted({int(i) for line in result.lines for i in _LOW.findall(line)}))
    mask = "wave_merge" if for_wave else "merge"
    return _factory(read, result, mask, plain)(step, careful, [slots[i] for i in read], to)


@cache
def _factory(read: tuple[int, ...], result: _Named, mask: str, plain: tuple[int, int]) -> Callable[..., Step]:
    source = _TEMPLATE.format(
        slots=", ".join(f"s{i}" for i in read) + ("," if read else "()"), told=TOLD, mask=mask, low=result.low,
        high=result.high, own=result.own, least=plain[0], most=plain[1], reads="\n".join(_READ.format(i=i) for i in read),
        lines="\n".join(f"        {line}" for line in result.lines),
    )
    scope: dict[str, Any] = {"Held": Held, "merged": merged, "product": product, "chosen": chosen}
    exec(compile(source, "<exact step>", "exec"), scope)
    return scope["factory"]
