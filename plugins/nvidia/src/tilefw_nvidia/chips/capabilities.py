"""What every chip of this vendor serves, natively or by expansion: the capabilities are the kit's, so no chip has others."""

from __future__ import annotations

# Arithmetic is on these; the formats of 8 bits and less are loaded, stored, selected and cast, as in the language.
_INTEGERS = ("int1", "int4", "int8", "int16", "int32", "int64")
_FLOATS = ("fp16", "bf16", "fp32", "fp64")

CAPABILITIES = frozenset(
    {"control.*", "cf.*", "atomic.*", "memory.*", "cast.*", "select.*", "shape.*", "dot.*"}
    | {f"int.*.{name}" for name in _INTEGERS}
    | {f"{group}.*.{name}" for group in ("float", "math") for name in _FLOATS}
    | {f"{group}.{name}" for group in ("reduce", "scan") for name in (*_INTEGERS, *_FLOATS)}
)
