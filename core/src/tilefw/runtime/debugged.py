"""Whether launches run under a debugger in this context, and what runs them then instead of the launcher (`tilefw.debug`)."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

# Takes the kernel, its arguments in order, the grid and the launch's keywords.
DEBUGGER: ContextVar[Callable[..., Any] | None] = ContextVar("tilefw_debugger", default=None)
