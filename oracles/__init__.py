"""Outside judges of every backend: kernels that Triton compiles for its chip, and machine code broken on purpose.

`corpus` compiles `cases` of `kernels` and keeps them, `execute` runs them on the chip's simulator, `mutations` breaks code at one
site at a time, `allocated_kernel` the registers of one. Tests of the plugins and the benchmarks use them; nothing here
is installed.
"""
