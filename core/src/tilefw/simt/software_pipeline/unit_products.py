"""Whether a load is for products of matrix units that run by themselves alone: those read what copies bring where it lands."""

from __future__ import annotations

from xdsl.ir import SSAValue

from tilefw.simt.description import LaneMachine
from tilefw.simt.layout.asynchronous import FactorSource, asynchronous_layouts
from tilefw.simt.layout.atom_layouts import AtomChain
from tilefw.simt.lower import dot
from tilefw.simt.software_pipeline.address_slice import Load
from tilefw.tile.dialect.dot_op import DotOp
from tilefw.tile.dialect.shape_ops import TransOp


def is_for_units(load: Load, rows: int, machine: LaneMachine) -> bool:
    """Whether all that read a tile with rows along a dim are products of a unit that runs by itself."""
    return bool(load.result.first_use) and all(_multiplies(use.operation, load.result, rows, machine) for use in load.result.uses)


def _multiplies(op: object, value: SSAValue, rows: int, machine: LaneMachine) -> bool:
    if isinstance(op, TransOp) and op.order == (1, 0):
        return all(_multiplies(use.operation, op.results[0], 1 - rows, machine) for use in op.results[0].uses)
    if not isinstance(op, DotOp) or value is op.acc:
        return False
    known, any_way = FactorSource(True, (rows,)), FactorSource(True, (1, 0))
    sources = (known if value is op.a else any_way, known if value is op.b else any_way)
    ways = [(AtomChain.NONE, sources), (AtomChain.FOLLOWS, (FactorSource(False), sources[1]))]
    return any(
        asynchronous_layouts(dot.shape_of(op), dot.types_of(op), machine, chain, taken) is not None
        for chain, taken in ways[: 1 if value is op.a else 2]
    )
