"""The tile dialect for xDSL: its ops, types, and how a folded value becomes a constant."""

from __future__ import annotations

from functools import cache

from xdsl.context import Context
from xdsl.dialect_interfaces.constant_materialization import ConstantMaterializationInterface
from xdsl.dialects.builtin import Builtin, FloatAttr, IntegerAttr
from xdsl.dialects.func import Func
from xdsl.dialects.scf import Scf
from xdsl.ir import Attribute, Dialect, Operation

from tilefw.tile import elementwise, types
from tilefw.tile.ops import OPS, ConstantOp
from tilefw.tile.shared_ops import SHARED_OPS, SharedType


class _Materialize(ConstantMaterializationInterface):
    def materialize_constant(self, value: Attribute, type: Attribute) -> Operation | None:
        if isinstance(value, IntegerAttr | FloatAttr):
            return ConstantOp.create(result_types=[type], properties={"value": value})
        return None


Tile = Dialect(
    "tile", [*OPS, *SHARED_OPS, *elementwise.OPS.values()], [types.PtrType, types.Fp8E4B15Type, SharedType], [_Materialize()]
)
"""The tile dialect."""


@cache
def dialects() -> dict[str, Dialect]:
    """What tile IR is made of, by name."""
    return {"builtin": Builtin, "func": Func, "scf": Scf, "tile": Tile}


def context() -> Context:
    """A fresh xDSL context that knows tile IR."""
    found = Context()
    for dialect in dialects().values():
        found.load_dialect(dialect)
    return found
