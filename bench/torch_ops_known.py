"""Why a test of PyTorch's compiler fails here where the test, no kernel, asks for what this backend or this PyTorch does not have.

A row holds a pattern of the test's name, one of what it says when it fails, and the reason. What no row holds is a fault of ours.
"""

from __future__ import annotations

import upstream_known

KNOWN: tuple[tuple[str, str, str], ...] = (
    ("", "TestTimeoutError", "longer than the limit"),
    ("test_aoti_eager", "", "asks for a compiled library of C++ (AOTInductor)"),
    ("", "could not parse dispatch key: NPU", "registers an operator for another maker's device, which this copy of the file adds"),
    ("test_addmv", "fake tensor call", "this PyTorch itself refuses the operator for integers while it traces"),
    ("test_low_memory_max_pool", "no attribute", "asks for an operator that this PyTorch has no longer"),
    ("test_convolution5", "Constraints violated", "a dilation that is a marked size: PyTorch makes a number of it"),
    ("test_linear_mixed_dtype", "does not match", "wants the words of an error that this PyTorch says otherwise"),
    ("test_graph_partition_refcount", "active drivers", "calls PyTorch's own compiler below this backend, with Triton for a GPU"),
    ("test_add_complex4", "Scalars are not equal", "counts words of the host's code, which this PyTorch writes otherwise"),
    ("test_dropout3|test_max_pool2d_with_indices_backward5", "Scalars are not equal",
     "counts kernels, and here products and this gradient are kernels too; the numbers agree"),
    ("test_cat_extern_kernel", "Tensor-likes are not close",
     "a sum of 100 terms, themselves sums of 1024: PyTorch's own numbers are as far from those of fp64 as the kernels'"),
)


def reason(test: str, said: str) -> str | None:
    """Why this test fails with these words, or None where nobody knows."""
    return upstream_known.reason(test, said, KNOWN)
