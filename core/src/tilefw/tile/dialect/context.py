"""The tile dialect for xDSL: its ops and types, and a context that knows tile IR."""

from __future__ import annotations

from functools import cache, partial

from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.dialects.func import Func
from xdsl.dialects.scf import Scf
from xdsl.ir import Dialect

from tilefw.tile import types
from tilefw.tile.dialect import elementwise_op
from tilefw.tile.dialect.ops import OPS
from tilefw.tile.dialect.shared_ops import SHARED_OPS, SharedType

Tile = Dialect("tile", [*OPS, *SHARED_OPS, *elementwise_op.OPS.values()], [types.PtrType, types.Fp8E4B15Type, SharedType])
"""The tile dialect."""


@cache
def dialects() -> dict[str, Dialect]:
    """What tile IR is made of, by name."""
    return {"builtin": Builtin, "func": Func, "scf": Scf, "tile": Tile}


def context() -> Context:
    """A fresh xDSL context that knows tile IR. It loads a dialect when it is first asked for a name of it, as only text does."""
    found = Context()
    for name, dialect in dialects().items():
        found.register_dialect(name, partial(_same, dialect))
    return found


def _same(dialect: Dialect) -> Dialect:
    return dialect
