"""Functions of kernels that are made of the text of one expression, for tables in which only the expression differs."""

from __future__ import annotations

from typing import Any

import tilefw
import tilefw.language as tl
from tilefw.language.extra import libdevice


def function(name: str, parameters: str, expression: str, **known: Any) -> Any:
    """The jit function `name` of `parameters`, written as between the parentheses of a `def`.

    `tl`, `libdevice` and what is `known` are its globals.
    """
    text = f"def {name}({parameters}):\n    return {expression}\n"
    names: dict[str, Any] = {"tl": tl, "libdevice": libdevice, **known}
    exec(text, names)
    return tilefw.jit(source=text)(names[name])
