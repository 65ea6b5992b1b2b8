"""The names of Triton 3.9's language that tilefw does not serve yet. A name leaves this list when it is built."""

from __future__ import annotations

FUNCTIONS = (
    "atomic_load", "atomic_poll", "atomic_store", "device_print",
    "inline_asm_elementwise", "target_info",
)

# Methods of `tl.tensor` in Triton 3.9 that stand for such functions.
METHODS = frozenset({
    "atomic_load", "atomic_poll", "atomic_store",
})

LIBDEVICE = (
    "acos", "acosh", "add_rd", "add_rn", "add_ru", "add_rz", "asin", "asinh", "atan", "atan2", "atanh", "brev", "byte_perm",
    "cbrt", "copysign", "cosh", "cospi", "cyl_bessel_i0", "cyl_bessel_i1", "div_rd", "div_ru", "div_rz", "double2float_rd",
    "double2float_ru", "double2hiint", "double2int_rd", "double2int_rn", "double2int_ru", "double2ll_rd", "double2ll_rn",
    "double2ll_ru", "double2loint", "double2uint_rd", "double2uint_rn", "double2uint_ru", "double2ull_rd", "double2ull_rn",
    "double2ull_ru", "erfc", "erfcinv", "erfcx", "erfinv", "exp10", "fast_exp10f", "fast_log10f", "fast_tanf", "fdim", "ffs",
    "finitef", "float2int_rd", "float2int_rn", "float2int_ru", "float2ll_rd", "float2ll_rn", "float2ll_ru", "float2uint_rd",
    "float2uint_rn", "float2uint_ru", "float2ull_rd", "float2ull_rn", "float2ull_ru", "fma_rd", "fma_ru", "fma_rz", "fmod",
    "hadd", "hiloint2double", "hypot", "ilogb", "int2double_rn", "int2float_rd", "int2float_rn", "int2float_ru", "int2float_rz",
    "isfinited", "isinf", "j0", "j1", "jn", "ldexp", "lgamma", "ll2double_rd", "ll2double_rn", "ll2double_ru", "ll2double_rz",
    "ll2float_rd", "ll2float_rn", "ll2float_ru", "ll2float_rz", "llrint", "llround", "log10", "logb", "mul24", "mul_rd",
    "mul_rn", "mul_ru", "mul_rz", "nextafter", "norm3d", "norm4d", "normcdf", "normcdfinv", "rcbrt", "rcp64h", "rcp_rd",
    "rcp_rn", "rcp_ru", "rcp_rz", "remainder", "rhadd", "rhypot", "rnorm3d", "rnorm4d", "round", "rsqrt_rn", "sad", "saturatef",
    "scalbn", "signbit", "sinh", "sinpi", "sqrt_rd", "sqrt_ru", "sqrt_rz", "sub_rd", "sub_rn", "sub_ru", "sub_rz", "tan",
    "tgamma", "uint2double_rn", "uint2float_rd", "uint2float_rn", "uint2float_ru", "uint2float_rz", "ull2double_rd",
    "ull2double_rn", "ull2double_ru", "ull2double_rz", "ull2float_rd", "ull2float_rn", "ull2float_ru", "ull2float_rz", "y0",
    "y1", "yn",
)
