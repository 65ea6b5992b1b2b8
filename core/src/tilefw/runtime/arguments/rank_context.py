"""The hidden argument of a kernel that knows its place in a node: the context of its rank, while a node binds launches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from tilefw.api.errors import LaunchError
from tilefw.runtime.arguments.arrays import HostArray

_CONTEXT: ContextVar[HostArray | None] = ContextVar("tilefw_rank_context", default=None)


@contextmanager
def in_context(context: HostArray) -> Iterator[None]:
    """Launches that are bound meanwhile are of the rank that has this context."""
    token = _CONTEXT.set(context)
    try:
        yield
    finally:
        _CONTEXT.reset(token)


def on_a_node() -> bool:
    """Whether the launch that is bound is one of a rank."""
    return _CONTEXT.get() is not None


def rank_context(kernel: str) -> HostArray:
    """The context of the rank whose launch is bound. Raises LaunchError TFW0871 where there is none."""
    found = _CONTEXT.get()
    if found is None:
        raise LaunchError(
            f"kernel {kernel} asks for its rank, and is launched on no node", code="TFW0871",
            help="launch it on a node: tilefw.node(target, ranks).launch(kernel, grid, …)",
        )
    return found
