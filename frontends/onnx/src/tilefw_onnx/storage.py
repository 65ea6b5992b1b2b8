"""Arrays of ONNX in the form in which tilefw stores their element type."""

from __future__ import annotations

import numpy as np

from tilefw.api.dtypes import dtype
from tilefw.kernels import formats


def storage(array: np.ndarray, element: str) -> np.ndarray:
    """The array in the dtype that tilefw stores elements of type `element` in; E8M0 as bytes."""
    whole = np.ascontiguousarray(array)
    wanted = formats.array_dtype(element)
    if whole.dtype == wanted:
        return whole.reshape(array.shape)
    return whole.view(wanted if dtype(element).bits >= 8 else whole.dtype).reshape(array.shape)
