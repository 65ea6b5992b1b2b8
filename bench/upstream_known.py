"""Why a test of Triton's own fails here where the test, not the kernel, asks for what tilefw does not have.

A row holds a pattern of the test's name, one of what it says when it fails, and the reason. What no row holds is a fault of ours.
"""

from __future__ import annotations

import re

# Once their kernel has run, these ask for what only Triton's compiler has, levels of IR or a refusal, unless they see another.
# From there on they see its interpreter, so that they compare the numbers; the kernel was compiled and run as every other.
INTERPRETED = ("test_assume", "test_call", "test_optimize_thread_locality")

# These ask who made the device, and then for a function, an instruction or a number of that vendor's: they see the target itself.
AS_ITSELF = (
    "test_globaltimer", "test_smid", "test_num_threads", "test_inline_asm", "test_inline_asm_multiple_outputs",
    "test_inline_asm_packed", "test_inline_asm_packed_multiple_outputs", "test_inline_asm_with_pointers",
)

_OTHER_LEVELS = "reads the text of Triton's own levels of IR, or of another compiler's code"
_NOT_HERE = "is not there"

KNOWN: tuple[tuple[str, str, str], ...] = (
    ("", r"KeyError: '(ttir|ttgir|llir|ptx|amdgcn)'", _OTHER_LEVELS),
    ("test_tl_range_num_stages", "cp.async.wait_group", _OTHER_LEVELS),
    ("test_poison_return", "Return type mismatch", _OTHER_LEVELS),
    ("test_pointer_arguments", "DID NOT RAISE", "wants tensors of the host refused; here they are the tensors of every target"),
    ("test_atomic_poll_no_timeout_uses_no_shared_memory", "assert 1 == 0",
     "`metadata.shared` is 1 on a machine without shared memory, since programs divide by it"),
    ("test_atomic_poll_no_timeout_uses_no_shared_memory", r"assert \d+ == 0",
     "one thread polls, and the others get what it found through shared memory"),
    ("test_passing_nested_tuple_with_constexpr_and_jit_hook", "assert None is not None",
     f"`preload` of Triton's own serialised launches, and the hook that gives them, {_NOT_HERE}"),
    ("test_atomic_poll_timeout", "timeout_ns is not there yet",
     f"`atomic_poll(timeout_ns=…)` {_NOT_HERE}: no clock is read while a kernel runs"),
    ("test_globaltimer|test_smid", "AttributeError", f"the number of a processor, or a clock, read in a kernel, {_NOT_HERE}"),
    ("test_num_threads", "AttributeError", f"`tl.extra.<vendor>.num_threads` {_NOT_HERE}"),
    (r"test_reduce\[.*-None-True\]", "too many indices", "names an axis that a scalar does not have, which Triton 3.9 refuses too"),
    ("test_load_store_same_ptr", "TestTimeoutError", "launches 65 million workgroups: hours on a simulator"),
    ("test_mxfp8_mxfp4_matmul_tma", "TestTimeoutError|budget", "multiplies 8192 by 8192 by 8192: hours on a simulator"),
    ("test_typeconvert_downcast", "TestTimeoutError", "converts 2**32 numbers, and again by integers: hours on a simulator"),
    (r"test_scaled_dot\[(128-32-128-False-False-False-e5m2-e5m2|128-128-64-True-True-True-e4m3-fp16)-", "Mismatched elements: 1 /",
     "the sum is a 500,000th of its terms: PyTorch's, in fp32, is off in one element, where that of `reference` is exact"),
    (r"test_tensor_atomic_rmw.*float16", r"rtol=0\.0001",
     "wants halves that are right to a tenth of their spacing; where the order of a sum in fp32 decides between two halves, "
     "`reference` keeps what lies between them, with its bound, and adds on from there"),
)


def reason(test: str, said: str) -> str | None:
    """Why this test fails with these words, or None where nobody knows."""
    name = test.rpartition("::")[2]
    for pattern, words, why in KNOWN:
        if re.match(pattern, name) and re.search(words, said):
            return why
    return None
