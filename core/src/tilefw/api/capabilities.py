"""The closed registry of capabilities: what a kernel may need of a target, and what a target may claim.

A capability is `<group>.<element type>`, the type in Triton's spelling (`math.exp.fp32`); integers are signless, as in tile IR.
A claim may hold `*`, which matches any words (`int.*`, `*.fp32`, `*`). What belongs to one vendor alone is `x-<vendor>.…` and
stands in no table. Every other name is in `GROUPS`, so that a mistyped one is an error rather than a claim of nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from tilefw.api.dtypes import FLOATS, INTEGERS


@dataclass(frozen=True, slots=True)
class Group:
    """What one family of capabilities serves. `suffixes` are what may follow `name` and a dot: element types, mostly; none for a
    capability that has no element type."""

    name: str
    doc: str
    suffixes: tuple[str, ...] = ()

    def names(self) -> Iterator[str]:
        """Every capability of the group."""
        yield from (f"{self.name}.{suffix}" for suffix in self.suffixes) if self.suffixes else (self.name,)


_INTEGERS = tuple(d.name for d in INTEGERS if d.kind == "int" or d.name == "int1")
_FLOATS = tuple(d.name for d in FLOATS)
_NUMBERS = _INTEGERS + _FLOATS
_ANY = (*_NUMBERS, "pointer")
# Element types of atomics are those of Triton 3.9 (`semantic.py`, atom_red_typechecking_impl and atomic_cas).
_WORDS = ("int32", "int64")
_HALVES = ("fp16", "bf16")
_WIDE = ("fp32", "fp64")


def _of_kind(prefix: str, types: tuple[str, ...], docs: Mapping[str, str]) -> Iterator[Group]:
    return (Group(f"{prefix}.{name}", doc, types) for name, doc in docs.items())


_CONTROL = {
    "control.for": "a loop whose trip count is known before it starts",
    "control.if": "a branch on a scalar",
    "control.while": "a loop that ends by a condition that its body computes",
    "cf.dynamic": "a loop whose trip count depends on data that the kernel loaded",
    "cf.branch": "a branch on data that the kernel loaded",
}
_MEMORY = {
    "load": "elements read from global memory", "store": "elements written to global memory",
    "gather": "elements read at addresses that depend on data that the kernel loaded",
    "scatter": "elements written at addresses that depend on data that the kernel loaded",
    "reload": "elements read that the kernel itself may have written before",
}
_INTEGER = {
    "add": "sums that wrap", "sub": "differences that wrap", "mul": "the low half of products",
    "mulhi": "the high half of products", "div": "quotients towards zero, signed and unsigned",
    "rem": "remainders, signed and unsigned",
    "and": "bitwise and", "or": "bitwise or", "xor": "bitwise exclusive or", "shl": "shifts to the left",
    "shr": "shifts to the right, by sign or zeros", "abs": "magnitudes", "min": "the smaller, signed and unsigned",
    "max": "the larger, signed and unsigned",
    "clz": "leading zero bits", "popc": "one bits", "cmp": "compares, signed and unsigned",
}
_FLOAT = {
    "add": "sums, correctly rounded", "sub": "differences, correctly rounded", "mul": "products, correctly rounded",
    "div": "quotients within 2.5 units in the last place", "div_rn": "quotients, correctly rounded",
    "rem": "remainders of the dividend's sign", "fma": "x · y + z rounded once", "neg": "the other sign", "abs": "magnitudes",
    "min": "the smaller, by either rule for NaN", "max": "the larger, by either rule for NaN", "clamp": "values kept in a range",
    "cmp": "compares; all but `not equal` false with NaN", "isnan": "whether a value is NaN",
}
_MATH = {
    "sqrt": "square roots", "sqrt_rn": "square roots, correctly rounded", "rsqrt": "reciprocal square roots",
    "exp": "e to the power x", "exp2": "2 to the power x", "log": "natural logarithms", "log2": "logarithms to base 2",
    "sin": "sines", "cos": "cosines",
    "tanh": "hyperbolic tangents", "erf": "the error function", "pow": "x to the power y", "log1p": "log(1 + x), accurate near 0",
    "expm1": "exp(x) - 1, accurate near 0", "floor": "the next whole number below", "ceil": "the next whole number above",
    "trunc": "values without their fraction", "round": "the nearest whole number, ties to even",
}
_CAST = {
    "ext": "integers made wider, by sign or zeros", "trunc": "integers cut to their low bits", "float": "floats in another format",
    "s2f": "signed integers as floats", "u2f": "unsigned integers as floats", "f2s": "floats as signed integers, clamped",
    "f2u": "floats as unsigned integers, clamped", "bitcast": "the same bits as another type",
    "pointer": "pointers as integers and back",
}
_SHAPE = {
    "trans": "dims in another order", "reshape": "the elements in another shape", "join": "two tiles in a new last dim",
    "split": "the two halves of a last dim", "flip": "a dim backwards",
}
_ATOMIC: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("add", (*_WORDS, *_HALVES, *_WIDE), "sums"), ("max", (*_WORDS, *_WIDE), "maxima"), ("min", (*_WORDS, *_WIDE), "minima"),
    ("and", _WORDS, "bitwise and"), ("or", _WORDS, "bitwise or"), ("xor", _WORDS, "bitwise exclusive or"),
    ("xchg", (*_WORDS, *_WIDE), "values exchanged"),
    ("cas", ("int16", *_WORDS, *_HALVES, *_WIDE), "values exchanged if memory holds an expected one"),
)
# What is loaded is combined elsewhere than in memory, so that floats of 16 bits have every kind that floats have.
_MULTICAST = tuple(
    (kind, (*_WORDS, *_HALVES, *_WIDE) if "fp32" in types else types, doc) for kind, types, doc in _ATOMIC
    if kind not in ("xchg", "cas")
)

_FP8 = ("fp8e5", "fp8e4nv", "fp8e5b16", "fp8e4b8", "fp8e4b15")  # which mix with each other as operands of a product
_PRECISIONS = ("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6")  # how fp32 operands are multiplied (Triton's `input_precision`)
_SCALED = ("fp4e2m1", "fp6e2m3", "fp6e3m2", "fp8e4nv", "fp8e5", "fp16", "bf16")  # operands of products with scales
_DOT = (
    "fp64.fp64.fp64", *(f"fp32.fp32.fp32.{precision}" for precision in _PRECISIONS),
    "bf16.bf16.fp32", "fp16.fp16.fp32", "fp16.fp16.fp16", "int8.int8.int32",
    "uint8.uint8.int32", *(f"{a}.{b}.{sums}" for a in _FP8 for b in _FP8 for sums in ("fp32", "fp16")),
    *(f"scaled.{a}.{b}.fp32" for a in _SCALED for b in _SCALED),
)

GROUPS: tuple[Group, ...] = (
    *(Group(name, doc) for name, doc in _CONTROL.items()),
    *_of_kind("memory", _NUMBERS, _MEMORY),
    *_of_kind("int", _INTEGERS, _INTEGER),
    *_of_kind("float", _FLOATS, _FLOAT),
    *_of_kind("math", _FLOATS, _MATH),
    *_of_kind("cast", _ANY, _CAST),
    Group("select", "one of two values by a condition", _ANY),
    Group("shape.dims", "tiles of two dims and more"),
    *_of_kind("shape", _ANY, _SHAPE),
    Group("reduce", "a dim of a tile combined away, whatever combines", _ANY),
    Group("scan", "each prefix along a dim of a tile combined, whatever combines", _ANY),
    Group("gather", "elements of a tile picked along a dim by a tile of indices", _ANY),
    Group("dot", "matrix products of tiles plus an accumulator: `<a>.<b>.<accumulator>[.<precision>]`", _DOT),
    Group("print", "values that kernels print; made of atomic sums of 64 bits, stores and branches on loaded data"),
    Group("observe", "what the machine knows while a kernel runs", ("nanoseconds", "ticks", "processor")),
    Group("inline_asm", "text of the target's own assembly language in kernels"),
    *(Group(f"atomic.{kind}", f"{doc} in memory, atomically", types) for kind, types, doc in _ATOMIC),
    *(Group(f"multicast.load.{kind}", f"{doc} of all ranks' copies, through one address", of) for kind, of, doc in _MULTICAST),
    Group("multicast.store", "elements written to all ranks' copies, through one address", (*_WORDS, *_HALVES, *_WIDE)),
    *(
        Group(f"multicast.{kind}", f"{doc} in all ranks' memory, atomically, through one address", types)
        for kind, types, doc in _ATOMIC if kind not in ("xchg", "cas")
    ),
    Group("atomic.fence", "order of accesses without an atomic one, for whom its scope names"),
)

_ELEMENTARY = ("math.exp", "math.exp2", "math.log", "math.log2", "math.sqrt", "math.rsqrt")
_MOVED = ("memory.load", "memory.store")


def _each(groups: Iterable[str], *types: str) -> tuple[str, ...]:
    return tuple(f"{group}.{name}" for group in groups for name in types)


# Named sets that a report shows: a target has a profile when its claims cover every capability of it.
PROFILES: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "tile-base": (
        "control.for", "control.if", "shape.dims",
        *_each((*_MOVED, "select", "reduce", "shape.trans", "shape.reshape"), "int32", "fp32"),
        *_each((f"int.{kind}" for kind in _INTEGER), "int32"), *_each((f"float.{kind}" for kind in _FLOAT), "fp32"),
        *_each(_ELEMENTARY, "fp32"), *_each(("cast.s2f", "cast.f2s"), "int32", "fp32"),
    ),
    "tile-half": _each((*_MOVED, "cast.float", "float.add", "float.mul"), "fp16", "bf16"),
    "tile-fp64": _each((*_MOVED, "float.add", "float.mul", "float.div", "reduce"), "fp64"),
    "tile-int64": _each((*_MOVED, "int.add", "int.mul", "int.div", "int.cmp"), "int64"),
    "tile-mma": ("dot.fp16.fp16.fp32", "dot.bf16.bf16.fp32", "dot.fp32.fp32.fp32.tf32"),
    "tile-mma-int8": ("dot.int8.int8.int32",),
    "tile-fp8": _each((*_MOVED, "cast.float"), "fp8e5", "fp8e4nv"),
    "tile-scan": _each(("scan",), "int32", "fp32"),
    "tile-atomics": (*_each((f"atomic.{kind}" for kind, _, _ in _ATOMIC), "int32"), "atomic.add.fp32"),
    "tile-dynamic": ("cf.dynamic", "control.while"),
})

_COMPUTED_INTEGERS = ("int1", "int4", "int8", "int16", "int32", "int64")
_COMPUTED_FLOATS = ("fp16", "bf16", "fp32", "fp64")
SIMT_CAPABILITIES = frozenset((
    "control.*", "cf.*", "print", "atomic.*", "memory.*", "cast.*", "select.*", "shape.*", "gather.*", "dot.*",
    *_each(("int.*",), *_COMPUTED_INTEGERS), *_each(("float.*", "math.*"), *_COMPUTED_FLOATS),
    *_each(("reduce", "scan"), *_COMPUTED_INTEGERS, *_COMPUTED_FLOATS),
))
"""What a chip with lanes claims that has everything that the kit lowers: arithmetic on integers and on floats of 16 bits and more;
the formats of 8 bits and less are loaded, stored, selected, cast and multiplied, as in the language."""

_EXTRA = re.compile(r"x-[a-z0-9]+(\.[a-z0-9_*-]+)+", re.ASCII)


@cache
def names() -> frozenset[str]:
    """Every capability of the registry."""
    return frozenset(name for group in GROUPS for name in group.names())


def known(name: str) -> bool:
    """Whether `name` is in the registry, is a pattern that covers something of it, or is a vendor's extra."""
    if name in names() or _EXTRA.fullmatch(name):
        return True
    return "*" in name and re.search(f"^{_expression(name)}$", _lines(), re.MULTILINE) is not None


def describe(name: str) -> str:
    """What a capability of the registry serves, in words; raises KeyError for any other name."""
    return next(group.doc for group in GROUPS if name in group.names())


def suggest(name: str) -> str | None:
    """The registered capability that `name` most looks like, or None where none does."""
    from difflib import get_close_matches  # only wanted on the way to an error

    near = get_close_matches(name, sorted(names() | {group.name for group in GROUPS}), 1)
    return near[0] if near else None


def missing(needed: Iterable[str], claimed: frozenset[str]) -> frozenset[str]:
    """The needed capabilities that no claim covers."""
    if "*" in claimed:
        return frozenset()
    covers = _cover(claimed)
    return frozenset(name for name in needed if name not in claimed and not covers.fullmatch(name))


def profiles(claimed: frozenset[str]) -> tuple[str, ...]:
    """The profiles that the claims cover, in the order of `PROFILES`."""
    return tuple(name for name, needed in PROFILES.items() if not missing(needed, claimed))


@cache
def _lines() -> str:
    return "\n".join(sorted(names()))


@cache
def _cover(claimed: frozenset[str]) -> re.Pattern[str]:
    """One expression for all patterns of the claims; a claim of none fits nothing."""
    patterns = sorted(claim for claim in claimed if "*" in claim)
    return re.compile("|".join(_expression(pattern) for pattern in patterns) if patterns else r"(?!)")


def _expression(pattern: str) -> str:
    """`*` matches any words; nothing else is special."""
    return "[^\n]*".join(re.escape(part) for part in pattern.split("*"))
