"""What the kernels of attention share: which keys a block of queries sees, and which heads and lengths are refused."""

from __future__ import annotations

import tilefw
import tilefw.language as tl
from tilefw.api.errors import UsageError
from tilefw.kernels.spec import Parameters


@tilefw.jit
def keys_in_sight(first, past, keys, CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """(full, end) for the BLOCK_M queries from `first` on: each sees all of the first `full` keys, whole blocks of them, and none
    sees a key from `end` on. `past` is how many keys more than queries there are: causal masks are aligned at the ends. `full` is
    said not to be negative, so that engines may fetch all blocks: what they read before an array is zeros."""
    full = keys // BLOCK_N * BLOCK_N
    end = keys
    if CAUSAL:
        full = max(min(full, (first + past + 1) // BLOCK_N * BLOCK_N), 0)
        end = min(end, first + BLOCK_M + past)
    return full, end


def refuse_bad_heads(kernel: str, p: Parameters) -> None:
    """UsageError where heads do not share heads of keys evenly, or where causal queries have no place among the keys."""
    if p["heads"] % p["kv_heads"]:
        raise UsageError(
            f"{kernel}: {p['heads']} heads share {p['kv_heads']} of keys", code="TFW0942", note="kv_heads divides heads",
        )
    if p["causal"] and p["queries"] > p["keys"]:
        raise UsageError(
            f"{kernel}: {p['queries']} queries over {p['keys']} keys", code="TFW0942",
            note="causal queries are the last of the keys, so there cannot be more queries than keys",
        )
