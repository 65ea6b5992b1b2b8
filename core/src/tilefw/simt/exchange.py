"""Emits a planned conversion as lane IR."""

from __future__ import annotations

from typing import Any

from xdsl.ir import SSAValue

from tilefw.api.errors import InternalError
from tilefw.simt.convert import Plan
from tilefw.simt.layout import LinearLayout


def emit(context: Any, value: SSAValue, plan: Plan, source: LinearLayout, target: LinearLayout) -> SSAValue:
    """`value`, which stands in `source`, in `target`. `context` has `builder`, `address` and `machine`."""
    raise InternalError("exchange.emit is not there yet")
