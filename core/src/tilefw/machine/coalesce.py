"""Removes copies: a move's two registers become one where their values never need to differ.

Loop arguments and the results of branches are registers that several blocks write (there are no phis); the moves that
fill them mostly vanish here, and what stays is a real copy. Interference is Chaitin's: a definition interferes with all that is
live after it, but for the source of a move (G. Chaitin, "Register Allocation & Spilling via Graph Coloring", 1982).
"""

from __future__ import annotations

from tilefw.machine.inst import Function, Inst, Reg, Slice
from tilefw.machine.liveness import Unit, analyse, step_back
from tilefw.machine.table import InstructionTable


def coalesce(function: Function, table: InstructionTable) -> int:
    """Merge the registers of whole-register moves that do not interfere, and drop the moves; how many were dropped."""
    moves = [inst for inst in function.insts() if _is_copy(inst, table)]
    if not moves:
        return 0
    interference = _interference(function, table, {r for m in moves for r in (m.defs[0].reg, m.uses[0].reg)})  # type: ignore[union-attr]
    parent: dict[Reg, Reg] = {}
    for move in moves:
        a, b = _find(parent, move.defs[0].reg), _find(parent, move.uses[0].reg)  # type: ignore[union-attr]
        if a is b or a in interference.get(b, ()):
            continue
        parent[b] = a
        merged = interference.pop(b, set())
        interference.setdefault(a, set()).update(merged)
        for other in merged:
            interference[other].discard(b)
            interference[other].add(a)
    if parent:
        _rename(function, parent)
    return _drop_identities(function, table)


def _is_copy(inst: Inst, table: InstructionTable) -> bool:
    if inst.predicate is not None or len(inst.defs) != 1 or len(inst.uses) != 1 or not table.traits(inst.opcode).move:
        return False
    source, dest = inst.uses[0], inst.defs[0]
    if not isinstance(source, Slice) or source is not source.reg.whole or dest is not dest.reg.whole:
        return False
    a, b = source.reg, dest.reg
    return not (a.physical or b.physical) and (a.cls, a.width, a.align) == (b.cls, b.width, b.align)


def _interference(function: Function, table: InstructionTable, wanted: set[Reg]) -> dict[Reg, set[Reg]]:
    """Which of the `wanted` registers may not share; registers outside are of no interest."""
    graph: dict[Reg, set[Reg]] = {}
    live = analyse(function, table)
    for i, block in enumerate(function.blocks):
        now = set(live.live_out[i])
        for inst in reversed(block.insts):
            skip = inst.uses[0].reg if _is_copy(inst, table) else None  # type: ignore[union-attr]
            for piece in inst.writes():
                if piece.reg in wanted:
                    _interfere(graph, piece.reg, now, wanted, skip)
            step_back(now, inst)
    return graph


def _interfere(graph: dict[Reg, set[Reg]], reg: Reg, live: set[Unit], wanted: set[Reg], skip: Reg | None) -> None:
    for other, _ in live:
        if other is not reg and other is not skip and other in wanted:
            graph.setdefault(reg, set()).add(other)
            graph.setdefault(other, set()).add(reg)


def _find(parent: dict[Reg, Reg], reg: Reg) -> Reg:
    while reg in parent:
        reg = parent[reg]
    return reg


def _rename(function: Function, parent: dict[Reg, Reg]) -> None:
    def piece(s: Slice) -> Slice:
        reg = _find(parent, s.reg)
        return s if reg is s.reg else reg.whole if s is s.reg.whole else Slice(reg, s.first, s.count)

    for inst in function.insts():
        inst.defs = tuple(piece(d) for d in inst.defs)
        inst.uses = tuple(piece(u) if isinstance(u, Slice) else u for u in inst.uses)
        inst.implicit_defs = tuple(piece(d) for d in inst.implicit_defs)
        inst.implicit_uses = tuple(piece(u) for u in inst.implicit_uses)
        if inst.predicate is not None:
            inst.predicate = piece(inst.predicate)


def _drop_identities(function: Function, table: InstructionTable) -> int:
    dropped = 0
    for block in function.blocks:
        kept = [inst for inst in block.insts if not (_is_copy(inst, table) and inst.defs[0].reg is inst.uses[0].reg)]  # type: ignore[union-attr]
        dropped += len(block.insts) - len(kept)
        block.insts = kept
    return dropped
