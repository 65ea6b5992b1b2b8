"""One function while it is inlined: its source, names, place in the call chain, and what it has returned."""

from __future__ import annotations

import ast
from typing import Any

from xdsl.dialects.builtin import CallSiteLoc, FileLineColLoc, LocationAttr

from tilefw.api.errors import CompileError, Place
from tilefw.frontend.builder import Builder
from tilefw.frontend.scope import Scope
from tilefw.frontend.source import KernelSource
from tilefw.tile.dialect.base import count_attr, string_attr

CALL_DEPTH_LIMIT = 40


class Activation:
    """State of one call of one jit function. `caller` and `call` are the activation and node that called it."""

    __slots__ = ("_locations", "b", "call", "caller", "depth", "kernel", "loops", "pending", "scope", "source")

    def __init__(self, kernel: Any, builder: Builder, caller: Activation | None = None, call: ast.AST | None = None) -> None:
        self.kernel = kernel
        self.source: KernelSource = kernel.source
        self.scope = Scope(kernel.fn)
        self.b = builder
        self.caller = caller
        self.call = call
        self.depth: int = caller.depth + 1 if caller else 0
        # Run-time loops around the current statement, and names annotated without a value (`x: tl.constexpr`).
        self.loops = 0
        self.pending: dict[str, Any] = {}
        self._locations: dict[tuple[int, int], LocationAttr] = {}
        if self.depth > CALL_DEPTH_LIMIT:
            raise CompileError(
                f"calls are nested more than {CALL_DEPTH_LIMIT} deep at `{kernel.__name__}`",
                "TFW0112",
                note="calls are inlined, so recursion must end at compile time",
                help="let a constexpr parameter decide when to stop",
            )

    def place(self, node: ast.AST) -> Place:
        """Where a node stands, with the chain of calls that led here."""
        caller = self.caller.place(self.call) if self.caller and self.call else None
        return self.source.place(node, caller)

    def at(self, node: Any) -> None:
        """Let the ops made next carry this node's location."""
        self.b.location = self.location(node)

    def location(self, node: Any) -> LocationAttr:
        key = (node.lineno, node.col_offset)
        found = self._locations.get(key)
        if found is None:
            # Attributes of xDSL cost about ten microseconds each, so one is made per place.
            found = FileLineColLoc(string_attr(self.source.file), count_attr(key[0]), count_attr(key[1] + 1))
            if self.caller is not None and self.call is not None:
                found = CallSiteLoc(found, self.caller.location(self.call))
            self._locations[key] = found
        return found
