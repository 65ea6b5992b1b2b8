"""Loops of another compiler's listings as machine code that may be put into another order: with all that no operand names.

SCC stands in a scalar register that no instruction can name.
"""

from __future__ import annotations

from collections.abc import Iterator

from waiting.listing import FILES, Listing

from tilefw.api.machine import Function, Inst, Slice
from tilefw_amd.isa.model import MCInst

_PLACES = {"scc": (125, 1), "vcc": (106, 2), "exec": (126, 2), "m0": (124, 1)}


def loops(listing: Listing) -> Iterator[Function]:
    """Each innermost one as a function of its own, with its blocks and one behind them; branches in it, around accesses that lanes
    may be switched off for, are not taken where cycles are counted."""
    blocks = listing.function.blocks
    number = {block.label: n for n, block in enumerate(blocks)}
    back = [(number[t], m) for m, b in enumerate(blocks) for i in b.insts for t in i.targets if number.get(t, m + 1) <= m]
    for n, m in _innermost(back):
        loop = Function(blocks[n].label, listing.function.target)
        loop.files = listing.function.files
        for block in blocks[n : m + 1]:
            for inst in block.insts:
                _name_all(listing.function, inst, listing.encoded[inst])
            loop.block(block.label).insts = list(block.insts)
        for label in {t for inst in loop.insts() for t in inst.targets} - {block.label for block in loop.blocks}:
            loop.block(label).insts.append(Inst("s_endpgm"))
        loop.block("behind").insts.append(Inst("s_endpgm"))
        yield loop


def _innermost(found: list[tuple[int, int]]) -> list[tuple[int, int]]:
    ranges = sorted({(first, max(last for start, last in found if start == first)) for first, _ in found})
    return [(a, b) for a, b in ranges if not any((c, d) != (a, b) and a <= c and d <= b for c, d in ranges)]


def _name_all(function: Function, inst: Inst, encoded: MCInst) -> None:
    def place(name: str) -> Slice:
        return function.file("s", FILES["s"]).slice(*_PLACES[name])

    roles = [(operand.role, operand.name) for operand in encoded.form.operands if operand.name in _PLACES]
    read = [place(name) for role, name in roles if role == "implicit source"]
    if not encoded.form.row.wave:
        read.append(place("exec"))
    inst.implicit_uses = tuple(read)
    inst.implicit_defs = tuple(place(name) for role, name in roles if role == "implicit destination")
