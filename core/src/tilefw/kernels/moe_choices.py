"""What the kernels of a mixture of experts share: how tokens' choices of experts are drawn, and what is refused."""

from __future__ import annotations

import numpy as np

from tilefw.api.errors import UsageError
from tilefw.kernels.spec import Parameters

# How much less likely each expert is than the one before it, in powers of e.
_STEEPNESS = {"even": 0.0, "skewed": 1.0, "first": 1000.0}


def draw_choices(rng: np.random.Generator, p: Parameters) -> np.ndarray:
    """(tokens, top_k) different experts for each token: all alike, the first ones more often, or only the first ones."""
    scores = rng.gumbel(size=(p["tokens"], p["experts"])) - _STEEPNESS[p["spread"]] * np.arange(p["experts"])
    return np.argsort(-scores, axis=1)[:, : p["top_k"]].astype(np.int32)


def refuse_too_many(kernel: str, p: Parameters) -> None:
    """UsageError where a token would have more experts than there are."""
    if p["top_k"] > p["experts"]:
        raise UsageError(
            f"{kernel}: {p['top_k']} of {p['experts']} experts for each token", code="TFW0942", note="top_k is at most experts",
        )
