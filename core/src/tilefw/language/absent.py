"""The names of Triton 3.9's language that tilefw does not serve yet. A name leaves this list when it is built."""

from __future__ import annotations

FUNCTIONS = (
    "device_print", "inline_asm_elementwise",
)

LIBDEVICE: tuple[str, ...] = (
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cosh", "cospi", "cyl_bessel_i0", "cyl_bessel_i1",
    "erfc", "erfcinv", "erfcx", "erfinv", "exp10", "fast_exp10f", "fast_log10f", "fast_tanf", "hypot", "j0", "j1", "jn",
    "lgamma", "log10", "norm3d", "norm4d", "normcdf", "normcdfinv", "rcbrt", "rhypot", "rnorm3d", "rnorm4d", "rsqrt_rn",
    "sinh", "sinpi", "tan", "tgamma", "y0", "y1", "yn",
)
