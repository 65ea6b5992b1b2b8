"""Rows of the elementwise table as C: the expression of each, over operands that are named `{0}`, `{1}`, `{2}`.

Integers are C's unsigned types, whose arithmetic wraps; what is signed is cast where it counts. All rows that are not here are made
of these by core. `PRELUDE` has the functions that the expressions call.
"""

from __future__ import annotations

C_TYPES = {
    "i1": "bool", "i16": "uint16_t", "i32": "uint32_t", "i64": "uint64_t", "f32": "float", "f64": "double", "f16": "uint16_t",
    "bf16": "uint16_t",
}
SIGNED = {"i32": "int32_t", "i64": "int64_t"}
OTHERS = ("i8", "i4", "f8E5M2", "f8E4M3FN", "f8E5M2FNUZ", "f8E4M3FNUZ", "!tile.fp8e4b15", "f6E3M2FN", "f6E2M3FN", "f4E2M1FN")

PRELUDE = """#define _GNU_SOURCE
#include <math.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#define WORDS(bits) \\
  static inline uint##bits##_t shl##bits(uint##bits##_t x, uint##bits##_t y) { return y < bits ? x << y : 0; } \\
  static inline uint##bits##_t shru##bits(uint##bits##_t x, uint##bits##_t y) { return y < bits ? x >> y : 0; } \\
  static inline uint##bits##_t shrs##bits(uint##bits##_t x, uint##bits##_t y) { \\
    return (uint##bits##_t)((int##bits##_t)x >> (y < bits ? y : bits - 1)); } \\
  static inline uint##bits##_t divs##bits(uint##bits##_t x, uint##bits##_t y) { \\
    if (!y || !(y + 1)) return y ? 0 - x : y - 1; \\
    return (uint##bits##_t)((int##bits##_t)x / (int##bits##_t)y); } \\
  static inline uint##bits##_t rems##bits(uint##bits##_t x, uint##bits##_t y) { \\
    if (!y || !(y + 1)) return y ? 0 : x; \\
    return (uint##bits##_t)((int##bits##_t)x % (int##bits##_t)y); }
WORDS(32)
WORDS(64)
#define TO_INTEGER(name, from, bits, kind, low, beyond, least, most) \
  static inline uint##bits##_t name(from x) { \
    return x >= beyond ? most : x < low ? least : x == x ? (uint##bits##_t)(kind)x : 0; }
#define TO_INTEGERS(from, f) \
  TO_INTEGER(f2s_##f##_i32, from, 32, int32_t, -0x1p31, 0x1p31, 1u << 31, ~0u >> 1) \
  TO_INTEGER(f2s_##f##_i64, from, 64, int64_t, -0x1p63, 0x1p63, 1ull << 63, ~0ull >> 1) \
  TO_INTEGER(f2u_##f##_i32, from, 32, uint32_t, 0, 0x1p32, 0, ~0u) \
  TO_INTEGER(f2u_##f##_i64, from, 64, uint64_t, 0, 0x1p64, 0, ~0ull)
TO_INTEGERS(float, f32)
TO_INTEGERS(double, f64)
static inline uint32_t bits_f32(float x) { uint32_t y; memcpy(&y, &x, 4); return y; }
static inline uint64_t bits_f64(double x) { uint64_t y; memcpy(&y, &x, 8); return y; }
static inline float float_of(uint32_t x) { float y; memcpy(&y, &x, 4); return y; }
static inline double double_of(uint64_t x) { double y; memcpy(&y, &x, 8); return y; }
static inline uint64_t nanoseconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
"""


def c_type(type_: str) -> str:
    """C's type of an element; small formats are their codes."""
    return C_TYPES.get(type_, "uint8_t")


def _rows() -> dict[str, str]:
    rows = {f"select.{t}": "{0} ? {1} : {2}" for t in (*C_TYPES, *OTHERS)}
    rows |= {f"{row}.i1": f"{{0}} {sign} {{1}}" for row, sign in (("andi", "&"), ("ori", "|"), ("xori", "^"))}
    for type_, signed in SIGNED.items():
        bits = type_[1:]
        signs = {"addi": "+", "subi": "-", "muli": "*", "andi": "&", "ori": "|", "xori": "^", "eqi": "==", "ltu": "<"}
        rows |= {f"{row}.{type_}": f"{{0}} {sign} {{1}}" for row, sign in signs.items()}
        rows[f"lts.{type_}"] = f"({signed}){{0}} < ({signed}){{1}}"
        rows |= {f"{row}.{type_}": f"{row}{bits}({{0}}, {{1}})" for row in ("shl", "shru", "shrs", "divs", "rems")}
        for to, made in (("f32", "float"), ("f64", "double")):
            rows |= {f"s2f.{type_}.{to}": f"({made}) ({signed}){{0}}", f"u2f.{type_}.{to}": f"({made}){{0}}"}
            rows |= {f"{row}.{to}.{type_}": f"{row}_{to}_{type_}({{0}})" for row in ("f2s", "f2u")}
    for type_, end in (("f32", "f"), ("f64", "")):
        signs = {"addf": "+", "subf": "-", "mulf": "*", "divf": "/", "div_rn": "/", "eqf": "==", "ltf": "<", "lef": "<="}
        rows |= {f"{row}.{type_}": f"{{0}} {sign} {{1}}" for row, sign in signs.items()}
        rows |= {f"fma.{type_}": f"fma{end}({{0}}, {{1}}, {{2}})", f"sqrt_rn.{type_}": f"sqrt{end}({{0}})"}
    return rows | {
        "mulhu.i32": "(uint64_t){0} * {1} >> 32", "mulhu.i64": "(uint64_t)((unsigned __int128){0} * {1} >> 64)",
        "exts.i32.i64": "(int64_t)(int32_t){0}", "extu.i32.i64": "{0}",
        "trunci.i64.i32": "(uint32_t){0}", "castf.f32.f64": "{0}", "castf.f64.f32": "(float){0}",
    }


ROWS = _rows()
"""The expression of every row, by its key."""
