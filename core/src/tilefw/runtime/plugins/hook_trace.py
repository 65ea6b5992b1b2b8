"""Every call of a plugin's hooks on stderr, with what was given and what came back (TILEFW_TRACE_PLUGINS=1)."""

from __future__ import annotations

import sys
from typing import Any

_LONGEST = 200  # characters of an argument or an answer


def trace(manager: Any, plugin: str) -> None:
    """Tell the calls of `manager`, which is pluggy's and holds this plugin alone."""

    def before(name: str, implementations: list[Any], arguments: dict[str, Any]) -> None:
        if implementations:
            given = ", ".join(f"{key}={_short(value)}" for key, value in arguments.items())
            _tell(f"{plugin}: {name}({given})")

    def after(outcome: Any, name: str, implementations: list[Any], arguments: dict[str, Any]) -> None:
        if implementations:
            error = outcome.exception
            ended = f"-> {_short(outcome.get_result())}" if error is None else f"raised {type(error).__name__}: {_short(error)}"
            _tell(f"{plugin}: {name} {ended}")

    manager.add_hookcall_monitoring(before, after)


def _tell(text: str) -> None:
    print(f"tilefw hook: {text}", file=sys.stderr, flush=True)


def _short(value: Any) -> str:
    """A value in one line; IR by its kind alone, which is cheaper than its text."""
    if type(value).__module__.startswith("xdsl."):
        return f"<{type(value).__name__}>"
    try:
        text = " ".join(str(value).split())
    except KeyboardInterrupt:
        raise
    except BaseException:  # an object of the plugin's, whose own __str__ raises
        return f"<{type(value).__name__}>"
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
