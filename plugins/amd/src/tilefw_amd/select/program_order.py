"""Which program a workgroup runs: consecutive ones on one die, so that what they read in common stands in its L2.

A GPU of several dies (XCDs), each with an L2 of its own, hands workgroups out to them in turn: of eight dies, the workgroup with
index n (x fastest, then y, then z) runs on die n mod 8 (AMD's CDNA3 white paper; HipKittens, `chiplet_transform_chunked`). Of each
round of eight chunks the die d takes the d-th: workgroup 8 * i + d runs program chunk * d + i. Programs behind the last whole
round keep their own places, and so do all of a grid with 2**32 programs or more.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilefw.api.simt import Code, Const, Element


def program_id(code: Code, ids: Sequence[Element], counts: Sequence[Element], axis: int, chunk: int, dies: int) -> Element:
    """The program's index along `axis`; `ids` and `counts` are the workgroup's indices and how many there are, x, y, z. `dies` is a
    power of two."""
    row = _i32(code, "addi", ids[1], _i32(code, "muli", counts[1], ids[2]))
    own = _i32(code, "addi", ids[0], _i32(code, "muli", counts[0], row))
    size = dies * chunk
    turn = _i32(code, "andi", own, _const(size - 1))
    places = _i32(code, "muli", _i32(code, "andi", turn, _const(dies - 1)), _const(chunk))
    mine = _i32(code, "addi", _i32(code, "subi", own, turn), _i32(code, "addi", places, _i32(code, "divu", turn, _const(dies))))
    moved = code("ltu.i32", own, _whole_rounds(code, counts, size))
    return code("select.i32", moved, _along(code, mine, counts, axis), ids[axis])


def _whole_rounds(code: Code, counts: Sequence[Element], size: int) -> Element:
    """How many programs there are in whole rounds; 0 where 32 bits do not count them all."""
    plane = _i32(code, "muli", counts[0], counts[1])
    beyond = _i32(code, "ori", _i32(code, "mulhu", counts[0], counts[1]), _i32(code, "mulhu", plane, counts[2]))
    whole = _i32(code, "andi", _i32(code, "muli", plane, counts[2]), _const(-size))
    return code("select.i32", code("eqi.i32", beyond, _const(0)), whole, _const(0))


def _along(code: Code, index: Element, counts: Sequence[Element], axis: int) -> Element:
    """The part of an index into the grid that goes along one axis."""
    for count in counts[:axis]:
        index = _i32(code, "divu", index, count)
    return index if axis == len(counts) - 1 else _i32(code, "remu", index, counts[axis])


def _i32(code: Code, row: str, a: Element, b: Element) -> Element:
    return code(f"{row}.i32", a, b)


def _const(value: int) -> Const:
    return Const("i32", value & 0xFFFFFFFF)
