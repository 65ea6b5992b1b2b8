"""The words of Triton-distributed's libraries for scopes, orders and comparisons, in the language's."""

from __future__ import annotations

import tilefw
from tilefw.api.errors import CompileError

_SCOPES = {
    "cta": "cta", "workgroup": "cta", "wavefront": "cta", "gpu": "gpu", "agent": "gpu", "": "gpu",
    "sys": "sys", "system": "sys", "intra_node": "sys", "inter_node": "sys",
}
_ORDERS = {"relaxed": "relaxed", "monotonic": "relaxed", "": "relaxed", "acquire": "acquire", "release": "release",
           "acq_rel": "acq_rel", "sc": "acq_rel"}


@tilefw.constexpr_function
def scope_of(word: str) -> str:
    """Triton's word. Raises CompileError TFW0221."""
    return _found(_SCOPES, word, "scope")


@tilefw.constexpr_function
def order_of(word: str) -> str:
    """Of an update or a fence. Raises CompileError TFW0221."""
    return _found(_ORDERS, word, "semantic")


@tilefw.constexpr_function
def load_order(word: str) -> str:
    """Of a load, which releases nothing. Raises CompileError TFW0221."""
    return "acquire" if _found(_ORDERS, word, "semantic") in ("acquire", "acq_rel") else "relaxed"


@tilefw.constexpr_function
def store_order(word: str) -> str:
    """Of a store, which acquires nothing. Raises CompileError TFW0221."""
    return "release" if _found(_ORDERS, word, "semantic") in ("release", "acq_rel") else "relaxed"


def _found(known: dict[str, str], word: str, what: str) -> str:
    if word not in known:
        raise CompileError(f"{what} is one of {', '.join(map(repr, known))}, not {word!r}", "TFW0221")
    return known[word]
