"""Why a test of Triton's own fails here where the test, not the kernel, asks for what tilefw does not have.

A row holds a pattern of the test's name, one of what it says when it fails, and the reason. What no row holds is a fault of ours.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

# Once their kernel has run, these ask for what only Triton's compiler has, levels of IR or a refusal, unless they see another.
# From there on they see its interpreter, so that they compare the numbers; the kernel was compiled and run as every other.
INTERPRETED = ("test_assume", "test_call", "test_optimize_thread_locality")

# These ask who made the device, and then for a function, an instruction or a number of that vendor's: they see the target itself.
AS_ITSELF = (
    "test_globaltimer", "test_smid", "test_num_threads", "test_inline_asm", "test_inline_asm_multiple_outputs",
    "test_inline_asm_packed", "test_inline_asm_packed_multiple_outputs", "test_inline_asm_with_pointers",
)

_OTHER_LEVELS = "reads the text of Triton's own levels of IR, or of another compiler's code"

KNOWN: tuple[tuple[str, str, str], ...] = (
    ("test_tl_range_num_stages", r"cp.async.wait_group|KeyError: 'ptx'",
     "its numbers agree to 0.001; then it looks for an instruction in another compiler's code"),
    ("test_globaltimer|test_smid", "KeyError|TypeError: argument", "its numbers agree; then it reads another compiler's code"),
    ("", r"KeyError: '(ttir|ttgir|llir|ptx|amdgcn)'", _OTHER_LEVELS),
    ("test_poison_return", "Return type mismatch", _OTHER_LEVELS),
    ("test_pointer_arguments", "DID NOT RAISE", "wants tensors of the host refused; here they are the tensors of every target"),
    ("test_atomic_poll_no_timeout_uses_no_shared_memory", "assert 1 == 0",
     "`metadata.shared` is 1 on a machine without shared memory, since programs divide by it"),
    ("test_num_threads", "TFW0107", "asks how many threads run a program: on a machine without lanes none do"),
    (r"test_reduce\[.*-None-True\]", "too many indices", "names an axis that a scalar does not have, which Triton 3.9 refuses too"),
    ("test_load_store_same_ptr", "num_warps=32 is too much", "launches 32 waves of 64 lanes; a workgroup has 1024 threads"),
    ("test_load_store_same_ptr", "TestTimeoutError", "launches 65 million workgroups: hours on a simulator"),
    ("test_mxfp8_mxfp4_matmul_tma", "TestTimeoutError|budget", "multiplies 8192 by 8192 by 8192: hours on a simulator"),
    ("test_typeconvert_downcast", "TestTimeoutError", "converts 2**32 numbers, and again by integers: hours on a simulator"),
    (r"test_scaled_dot\[(128-32-128-False-False-False-e5m2-e5m2|128-128-64-True-True-True-e4m3-fp16|64-64-128-False-False-True-e4m3-fp16"
     r"|128-64-128-True-True-True-e5m2-e4m3)-", "Mismatched elements: 1 /",
     "the sum is less than a 250,000th of its terms: two orders of addition in fp32 differ there in one element"),
)


def reason(test: str, said: str, known: Sequence[tuple[str, str, str]] = KNOWN) -> str | None:
    """Why this test fails with these words by the rows of `known`, or None where nobody knows."""
    name = test.rpartition("::")[2]
    for pattern, words, why in known:
        if re.match(pattern, name) and re.search(words, said):
            return why
    return None
