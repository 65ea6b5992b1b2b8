"""Why a collection's own test fails here where the test, not the kernel, asks for what tilefw or this host does not have.

A row holds a pattern of the test's name, one of what it says when it fails, and the reason. What no row holds is a fault of ours.
"""

from __future__ import annotations

import upstream_known

KNOWN: tuple[tuple[str, str, str], ...] = (
    ("test_import_custom_cache_manager|test_import_from_root", "", "Triton's store of compiled code is not there"),
    ("test_(no_recompile|single_vs_multi_segment)", "expected . graphs?",
     "counts what PyTorch's tracer makes; functions stay as they are"),
    (r"test_decode\[B2-Sq1-Skv1-", "ratio: 0.029",
     "the kernel rounds r·k, 18.4 with the host's random numbers, to bf16 and takes it from itself: PyTorch gives 0.0291"),
    ("test_chunk_varlen", "out of the bounds of level_scales",
     "the kernel reads the level of a distance up to its block's 64, and 15 tokens have 5: behind the end of `level_scales`"),
    (r"test_liger_layer_norm\[dtype1-", "assert False",
     "Liger keeps means and deviations in bf16, PyTorch in float32: with the host's random numbers it shows, on `reference` too"),
    ("", "TestTimeoutError", "longer than the limit on a simulator"),
    ("", "TFW0619", "inline assembly of PTX: `reference` has no machine, and says that it is a GPU so that programs choose at all"),
)


def reason(test: str, said: str) -> str | None:
    """Why this test fails with these words, or None where nobody knows."""
    return upstream_known.reason(test, said, KNOWN)
