"""Programs as text: one section a queue, an instruction a line, `@cycle` where it is determined; arrays as directives.

    .machine sdm-1 3d302e75…
    .entry "vector_add"
    .grid 4, 1, 1
    .expect_cycles 143
    .parameter pointer "x" fp32 nbytes=5120
    .tensor in "x" fp32 vectors=4 groups=1 segment=4
    .plane MEM.E0 b0:0
    …
    .chip 0
    .queue MEM.E0
      @0 RD b0:0, n=4 -> sW0
    .queue VXM.0
      @6 ADD.fp32 sW0, #0x3f800000, n=4 -> sE0
"""

from tilefw_spatial.text.parser import parse
from tilefw_spatial.text.printer import render

__all__ = ["parse", "render"]
