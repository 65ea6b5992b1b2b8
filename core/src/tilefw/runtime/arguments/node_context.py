"""The hidden argument of a kernel that knows its place in a node: the address of its rank's context, while a node binds launches.

The context is an array of int64: the rank, the number of ranks, and the base of each rank's symmetric heap."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from tilefw.api.errors import LaunchError
from tilefw.runtime.arguments.arrays import HostArray

HIDDEN = "node_context"  # what `Parameter.hidden` says
_CONTEXT: ContextVar[HostArray | None] = ContextVar("tilefw_node_context", default=None)


@contextmanager
def in_context(context: HostArray) -> Iterator[None]:
    """Launches that are bound meanwhile are of the rank that has this context."""
    token = _CONTEXT.set(context)
    try:
        yield
    finally:
        _CONTEXT.reset(token)


def node_context(kernel: str) -> HostArray:
    """The context of the rank whose launch is bound. Raises LaunchError TFW0871 where there is none."""
    found = _CONTEXT.get()
    if found is None:
        raise LaunchError(
            f"kernel {kernel} asks for its rank, and is launched on no node", code="TFW0871",
            help="launch it on a node: tilefw.node(target, ranks).launch(kernel, grid, …)",
        )
    return found
