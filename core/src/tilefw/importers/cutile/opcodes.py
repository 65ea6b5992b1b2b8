"""The operations of Tile IR as bytecode spells them: number, name, results, flags, attributes, operands, regions, versions.

The words are those of Tile IR's dialect. A flag whose name an attribute or an operand with `?` has says that this one is there; any
other flag is a fact of its own. `*` marks several operands behind their number. `name:kind` is an attribute, and `@13.2` says since
which version it, or all flags of an operation, are written.

Source: the writer in cuTile Python 1.7.0, `_bytecode/encodings.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

Version = tuple[int, int]

# The words of an attribute with one byte, by the byte.
ENUMERATIONS: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "mode": ("and", "or", "xor", "add", "addf", "max", "min", "umax", "umin", "xchg"),
    "ordering": ("unordered", "ordered"),
    "predicate": ("equal", "not_equal", "less_than", "less_than_or_equal", "greater_than", "greater_than_or_equal"),
    "overflow": ("none", "no_signed_wrap", "no_unsigned_wrap", "no_wrap"),
    "semantics": ("weak", "relaxed", "acquire", "release", "acq_rel"),
    "scope": ("tl_blk", "device", "sys"),
    "rounding": (
        "nearest_even", "zero", "negative_inf", "positive_inf", "approx", "full", "nearest_int_to_zero", "nearest_away",
    ),
    "signedness": ("unsigned", "signed"),
    "reduction": ("add", "min", "max", "and", "or", "xor", "umin", "umax"),
})


@dataclass(frozen=True, slots=True)
class OperandForm:
    """One operand: `optional` where a flag says whether it is there, `several` where their number is written."""

    name: str
    optional: bool
    several: bool


@dataclass(frozen=True, slots=True)
class AttributeForm:
    """One attribute: how it is written (`kind`), whether a flag says that it is there, since which version it is written."""

    name: str
    kind: str
    optional: bool
    since: Version


@dataclass(frozen=True, slots=True)
class Opcode:
    """One operation. `results` is None where their number is written; `regions` counts blocks of operations within it."""

    number: int
    name: str
    results: int | None
    flags: tuple[str, ...]
    flags_since: Version
    attributes: tuple[AttributeForm, ...]
    operands: tuple[OperandForm, ...]
    regions: int
    since: Version


FIRST_VERSION: Version = (13, 1)


def _version(text: str) -> Version:
    major, _, minor = text.partition(".")
    return (int(major), int(minor)) if text else FIRST_VERSION


def _attribute(text: str) -> AttributeForm:
    text, _, since = text.partition("@")
    name, _, kind = text.partition(":")
    plain = name.removesuffix("?")
    return AttributeForm(plain, kind or plain, name != plain, _version(since))


def _operand(text: str) -> OperandForm:
    return OperandForm(text.rstrip("?*"), text.endswith("?"), text.endswith("*"))


def _op(
    number: int, name: str, operands: str = "", *, results: int | None = 1, flags: str = "", attributes: str = "", regions: int = 0,
    since: str = "",
) -> Opcode:
    words, _, flags_since = flags.partition("@")
    return Opcode(
        number, name, results, tuple(words.split()), _version(flags_since), tuple(map(_attribute, attributes.split())),
        tuple(map(_operand, operands.split())), regions, _version(since),
    )


_FTZ, _NAN = "flush_to_zero", "propagate_nan flush_to_zero"
_ACCESS = "semantics scope? hints?:hints"

_ROWS = (
    # Floating point.
    _op(0, "absf", "source"),
    _op(2, "addf", "lhs rhs", flags=_FTZ, attributes="rounding"),
    _op(103, "subf", "lhs rhs", flags=_FTZ, attributes="rounding"),
    _op(76, "mulf", "lhs rhs", flags=_FTZ, attributes="rounding"),
    _op(20, "divf", "lhs rhs", flags=_FTZ, attributes="rounding"),
    _op(40, "fma", "lhs rhs acc", flags=_FTZ, attributes="rounding"),
    _op(89, "remf", "lhs rhs"),
    _op(79, "negf", "source"),
    _op(69, "maxf", "lhs rhs", flags=_NAN),
    _op(71, "minf", "lhs rhs", flags=_NAN),
    _op(110, "atan2", "x y", since="13.2"),
    _op(13, "ceil", "source"),
    _op(39, "floor", "source"),
    _op(18, "cos", "source"),
    _op(19, "cosh", "source"),
    _op(98, "sin", "source"),
    _op(99, "sinh", "source"),
    _op(105, "tan", "source"),
    _op(106, "tanh", "source", attributes="rounding@13.2"),
    _op(23, "exp", "source", attributes="rounding@13.3"),
    _op(24, "exp2", "source", flags=_FTZ),
    _op(63, "log", "source"),
    _op(64, "log2", "source"),
    _op(84, "pow", "source exponent"),
    _op(121, "fpowi", "source exponent", since="13.4"),
    _op(93, "rsqrt", "source", flags=_FTZ),
    _op(100, "sqrt", "source", flags=_FTZ, attributes="rounding"),
    _op(14, "cmpf", "lhs rhs", attributes="predicate ordering"),
    # Integers.
    _op(1, "absi", "source"),
    _op(3, "addi", "lhs rhs", attributes="overflow"),
    _op(104, "subi", "lhs rhs", attributes="overflow"),
    _op(78, "muli", "lhs rhs", attributes="overflow"),
    _op(77, "mulhii", "x y"),
    _op(21, "divi", "lhs rhs", attributes="signedness rounding"),
    _op(90, "remi", "lhs rhs", attributes="signedness"),
    _op(70, "maxi", "lhs rhs", attributes="signedness"),
    _op(72, "mini", "lhs rhs", attributes="signedness"),
    _op(80, "negi", "source", attributes="overflow@13.2"),
    _op(4, "andi", "lhs rhs"),
    _op(82, "ori", "lhs rhs"),
    _op(108, "xori", "lhs rhs"),
    _op(96, "shli", "lhs rhs", attributes="overflow"),
    _op(97, "shri", "lhs rhs", attributes="signedness"),
    _op(15, "cmpi", "lhs rhs", attributes="predicate signedness"),
    _op(95, "select", "condition lhs rhs"),
    # Conversions.
    _op(9, "bitcast", "source"),
    _op(37, "exti", "source", attributes="signedness"),
    _op(107, "trunci", "source", attributes="overflow"),
    _op(42, "ftof", "source", attributes="rounding"),
    _op(43, "ftoi", "source", flags="saturating@13.4", attributes="signedness rounding"),
    _op(59, "itof", "source", attributes="signedness rounding"),
    _op(51, "int_to_ptr", "source"),
    _op(86, "ptr_to_int", "source"),
    _op(87, "ptr_to_ptr", "source"),
    _op(111, "pack", "source", since="13.3"),
    _op(112, "unpack", "source", since="13.3"),
    # Constants and facts.
    _op(16, "constant", attributes="value:constant"),
    _op(58, "iota"),
    _op(6, "assume", "value", attributes="predicate:tagged"),
    _op(44, "get_global", attributes="name:string"),
    # Shapes.
    _op(11, "broadcast", "source"),
    _op(91, "reshape", "source"),
    _op(83, "permute", "source", attributes="permutation:int32s"),
    _op(12, "cat", "lhs rhs", attributes="dim:integer"),
    _op(38, "extract", "operands*", results=None),
    _op(118, "insert", "operands*", results=None, since="13.4"),
    # Reductions, scans and products of matrices.
    _op(88, "reduce", "operands*", results=None, attributes="dim:integer identities:tagged_list", regions=1),
    _op(94, "scan", "operands*", results=None, attributes="dim:integer reverse:boolean identities:tagged_list", regions=1),
    _op(73, "mmaf", "lhs rhs acc", flags="fast_acc@13.3"),
    _op(74, "mmai", "lhs rhs acc", attributes="signedness_lhs:signedness signedness_rhs:signedness"),
    _op(114, "mmaf_scaled", "lhs rhs acc lhs_scale rhs_scale", since="13.3"),
    # Memory: pointers.
    _op(81, "offset", "pointer offset"),
    _op(
        61, "load_ptr_tko", "source mask? padding? token?", results=2, flags="scope hints mask padding token", attributes=_ACCESS,
    ),
    _op(101, "store_ptr_tko", "destination value mask? token?", flags="scope hints mask token", attributes=_ACCESS),
    _op(8, "atomic_rmw_tko", "pointers value mask? token?", results=2, flags="mask token", attributes="semantics scope mode"),
    _op(7, "atomic_cas_tko", "pointers compare value mask? token?", results=2, flags="mask token", attributes="semantics scope"),
    _op(113, "alloca", flags="global", attributes="count:integer alignment:integer", since="13.3"),
    # Memory: views.
    _op(67, "make_tensor_view", "base shape* strides*", results=None),
    _op(66, "make_partition_view", "tensor_view"),
    _op(115, "make_gather_scatter_view", "tensor_view", since="13.3"),
    _op(116, "make_strided_view", "tensor_view", since="13.3"),
    _op(45, "get_index_space_shape", "view", results=None),
    _op(47, "get_tensor_shape", "view", results=None),
    _op(
        62, "load_view_tko", "view index* token?", results=None, flags="scope hints token",
        attributes=f"{_ACCESS} inbounds:booleans@13.4",
    ),
    _op(
        102, "store_view_tko", "value view index* token?", results=None, flags="scope hints token",
        attributes=f"{_ACCESS} inbounds:booleans@13.4",
    ),
    _op(
        117, "atomic_red_view_tko", "view index* value token?", results=None, flags="token", attributes="semantics scope mode",
        since="13.3",
    ),
    # Tokens.
    _op(68, "make_token"),
    _op(60, "join_tokens", "tokens*", results=None),
    _op(122, "memory_fence_alias_tko", "token", since="13.4"),
    _op(119, "gdc_launch_dependents_tko", "token*", since="13.4"),
    _op(120, "gdc_wait_tko", "token*", since="13.4"),
    # The grid, messages.
    _op(48, "get_tile_block_id", results=3),
    _op(46, "get_num_tile_blocks", results=3),
    _op(5, "assert", "condition", results=0, attributes="message:string"),
    _op(85, "print_tko", "arguments* token?", results=None, flags="token@13.2", attributes="format:string"),
    # Control flow.
    _op(50, "if", "condition", results=None, regions=2),
    _op(41, "for", "operands*", results=None, flags="unsigned@13.2", regions=1),
    _op(65, "loop", "operands*", results=None, regions=1),
    _op(10, "break", "operands*", results=None),
    _op(17, "continue", "operands*", results=None),
    _op(92, "return", "operands*", results=None),
    _op(109, "yield", "operands*", results=None),
)

OPCODES: Mapping[int, Opcode] = MappingProxyType({row.number: row for row in _ROWS})
# Operations that the writer knows and that need a later version, or several devices: refused by these names.
LATER: Mapping[int, str] = MappingProxyType({
    22: "entry", 49: "global", 75: "module", 123: "multimem_load_reduce_view_tko", 124: "multimem_reduce_view_tko",
    125: "multimem_store_view_tko", 16386: "preview.call",
})
TERMINATORS = frozenset({"break", "continue", "return", "yield"})
