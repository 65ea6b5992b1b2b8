"""A kernel whose launch has a profile: see docs/profiling.md."""

import numpy as np

import tilefw
import tilefw.language as tl


@tilefw.jit
def add(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    x = tl.load(x_ptr + at, mask=inside)
    y = tl.load(y_ptr + at, mask=inside)
    tl.store(y_ptr + at, x + y, mask=inside)


if __name__ == "__main__":
    x, y = np.ones(65536, np.float32), np.zeros(65536, np.float32)
    with tilefw.target("nvidia-sm80"):
        result = add[(64,)](x, y, 65536, BLOCK=1024)
    print(result.profile())
