"""The lane algebra: the primitives in which every instruction's meaning is written, and their exact semantics.

A `Value` is one bit pattern per lane, of 1 (a predicate), 8, 16, 32, 64 or 128 bits; it carries its width and no type:
signedness and float format stand in the primitive. Operands of one primitive have one width unless said otherwise.
Meanings treat values as opaque: they neither look into them nor branch on them nor use Python operators.

Forms: `numpy_algebra` executes (the definition), `shadow` executes with bits of poison beside the value,
`recording` writes down what was asked (documentation, tests, later code generation). `primitive(rule)` gives each
method's result widths for the recording form: a rule maps the call's (operands, keywords) to a width or a tuple.

Float formats (`fmt`) are names of tile IR: "f16" "bf16" "f32" "f64" "tf32" (f32 bits, low 13 zero) "f8E5M2" "f8E4M3FN"
"f8E5M2FNUZ" "f8E4M3FNUZ" "f6E3M2FN" "f6E2M3FN" "f4E2M1FN" "f8E8M0FNU". Rounding modes: "rn" nearest even, "rz" toward
zero, "rm" down, "rp" up, "rna" nearest, ties away. `ftz` flushes subnormal inputs and results to zero with their sign. `saturate`
True clamps a result to [0, 1], NaN to 0. NaN results are quiet; their payload and sign are unspecified.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from tilefw.sim.algebra.engine_primitives import EnginePrimitives
from tilefw.sim.algebra.matrix_primitives import MatrixPrimitives
from tilefw.sim.algebra.multicast_primitives import MulticastPrimitives
from tilefw.sim.algebra.widths import float_width, no_result, one_bit, one_word, primitive, width_of_first
from tilefw.sim.matrix.fragments import BitMap

Value = Any
Rounding = Literal["rn", "rz", "rm", "rp", "rna"]
Space = str
"""A memory space: "global", "shared", "local", "param", "const", "generic", or the name of one of `Chip.spaces`."""
Order = Literal["weak", "relaxed", "acquire", "release", "acq_rel", "seq_cst"]
Scope = Literal["wave", "workgroup", "cluster", "device", "system"]
AtomicOp = Literal[
    "add", "and", "or", "xor", "exchange", "compare_exchange", "min_s", "min_u", "max_s", "max_u", "inc", "dec",
    "sub_from", "mask_or", "wrap", "fadd", "fmin", "fmax",
]
FloatClass = Literal["finite", "infinite", "number", "notanumber", "normal", "subnormal"]
Approximate = Literal["rcp", "rsqrt", "sqrt", "exp2", "log2", "sin", "cos", "tanh"]
WaveOp = Literal["add", "and", "or", "xor", "min_s", "min_u", "max_s", "max_u"]
Comparison = Literal["eq", "ne", "lt", "le", "gt", "ge", "num", "nan"]


class Algebra(MatrixPrimitives, EnginePrimitives, MulticastPrimitives):
    """Every primitive. Attributes that are plain numbers, fixed for a launch: `wave_size`."""

    wave_size: int

    # --- constants and widths -------------------------------------------------------------------------------------

    @primitive(lambda value, bits: bits)
    def const(self, value: int, bits: int) -> Value:
        """The same pattern in every lane; `value` is taken modulo 2**bits. With bits 1: a predicate."""

    @primitive(lambda bits: bits)
    def undefined(self, bits: int) -> Value:
        """A value that the architecture does not define: poison for the initialisation check, zero otherwise."""

    @primitive(lambda a, bits: bits)
    def zero_extend(self, a: Value, bits: int) -> Value:
        """To a larger (or equal) width; a predicate becomes 0 or 1."""

    @primitive(lambda a, bits: bits)
    def sign_extend(self, a: Value, bits: int) -> Value:
        """To a larger (or equal) width, two's complement; a predicate becomes 0 or all ones."""

    @primitive(lambda a, bits: bits)
    def truncate(self, a: Value, bits: int) -> Value:
        """The low `bits` bits (8, 16, 32, 64; 1 takes the lowest bit as a predicate)."""

    @primitive(lambda parts: sum(parts))
    def join(self, parts: Sequence[Value]) -> Value:
        """Parts of one width side by side, the first lowest; together 16, 32, 64 or 128 bits."""

    @primitive(lambda a, bits: (bits,) * (a // bits))
    def split(self, a: Value, bits: int) -> tuple[Value, ...]:
        """The inverse of `join`: parts of `bits` bits, lowest first."""
        ...

    # --- integers -------------------------------------------------------------------------------------------------

    @primitive(width_of_first)
    def add(self, a: Value, b: Value) -> Value:
        """Sum modulo 2**width."""

    @primitive(width_of_first)
    def sub(self, a: Value, b: Value) -> Value:
        """Difference modulo 2**width."""

    @primitive(width_of_first)
    def mul(self, a: Value, b: Value) -> Value:
        """The low half of the product."""

    @primitive(width_of_first)
    def neg(self, a: Value) -> Value:
        """Two's complement."""

    @primitive(lambda a, b, signed: 2 * a)
    def mul_wide(self, a: Value, b: Value, signed: bool) -> Value:
        """The whole product, twice as wide (8 to 16, 16 to 32, 32 to 64)."""

    @primitive(lambda a, b, signed: a)
    def mul_high(self, a: Value, b: Value, signed: bool) -> Value:
        """The high half of the product (16, 32 and 64 bits)."""

    @primitive(lambda a, b, signed: a)
    def div(self, a: Value, b: Value, signed: bool) -> Value:
        """Quotient, truncating. Division by zero gives all ones; smallest / -1 gives smallest."""

    @primitive(lambda a, b, signed: a)
    def rem(self, a: Value, b: Value, signed: bool) -> Value:
        """Remainder with the sign of `a`. By zero: `a`; smallest rem -1: 0."""

    @primitive(lambda a, b, signed: a)
    def min(self, a: Value, b: Value, signed: bool) -> Value:
        """The smaller."""

    @primitive(lambda a, b, signed: a)
    def max(self, a: Value, b: Value, signed: bool) -> Value:
        """The larger."""

    @primitive(width_of_first)
    def abs(self, a: Value) -> Value:
        """Absolute value of a signed number; of the smallest, itself."""

    @primitive(lambda a, b, carry: (a, 1))
    def add_carry(self, a: Value, b: Value, carry: Value) -> tuple[Value, Value]:
        """(a + b + carry modulo 2**width, carry out); carries are predicates."""
        ...

    @primitive(lambda a, b, borrow: (a, 1))
    def sub_borrow(self, a: Value, b: Value, borrow: Value) -> tuple[Value, Value]:
        """(a - b - borrow modulo 2**width, borrow out); borrows are predicates."""
        ...

    @primitive(lambda a, b, signed: a)
    def add_saturate(self, a: Value, b: Value, signed: bool) -> Value:
        """Sum clamped to the range of the width."""

    @primitive(lambda a, b, signed: a)
    def sub_saturate(self, a: Value, b: Value, signed: bool) -> Value:
        """Difference clamped to the range of the width."""

    # --- bits (predicates too, where the width is 1) --------------------------------------------------------------

    @primitive(width_of_first)
    def and_(self, a: Value, b: Value) -> Value:
        """Bitwise and."""

    @primitive(width_of_first)
    def or_(self, a: Value, b: Value) -> Value:
        """Bitwise or."""

    @primitive(width_of_first)
    def xor(self, a: Value, b: Value) -> Value:
        """Bitwise exclusive or."""

    @primitive(width_of_first)
    def not_(self, a: Value) -> Value:
        """Bitwise complement."""

    @primitive(lambda a, b, c, table: a)
    def lookup3(self, a: Value, b: Value, c: Value, table: int) -> Value:
        """Bit i of the result is bit (a_i*4 + b_i*2 + c_i) of the 8-bit `table` (a Python int)."""

    @primitive(width_of_first)
    def shl(self, a: Value, amount: Value) -> Value:
        """Shift left by an unsigned 32-bit amount; width or more gives 0."""

    @primitive(lambda a, amount, signed: a)
    def shr(self, a: Value, amount: Value, signed: bool) -> Value:
        """Shift right by an unsigned 32-bit amount; width or more gives 0, or the sign everywhere."""

    @primitive(one_word)
    def popcount(self, a: Value) -> Value:
        """Number of ones of a 32- or 64-bit value, as 32 bits."""

    @primitive(one_word)
    def leading_zeros(self, a: Value) -> Value:
        """Zeros above the highest one (the width for 0) of a 32- or 64-bit value, as 32 bits."""

    @primitive(width_of_first)
    def reverse_bits(self, a: Value) -> Value:
        """Bit i to bit width-1-i (32 and 64 bits)."""

    @primitive(lambda a, b, selector: 32)
    def permute_bytes(self, a: Value, b: Value, selector: Value) -> Value:
        """Byte i of the 32-bit result is byte `s & 7` of the eight bytes {b, a} (a lowest), s being the i-th nibble of the 32-bit
        selector; with `s & 8` the sign bit of that byte fills all 8 bits."""

    # --- comparison and choice ------------------------------------------------------------------------------------

    @primitive(one_bit)
    def compare(self, a: Value, b: Value, op: Literal["eq", "ne", "lt", "le", "gt", "ge"], signed: bool) -> Value:
        """Integer comparison, a predicate."""

    @primitive(lambda p, a, b: a)
    def select(self, p: Value, a: Value, b: Value) -> Value:
        """`a` where the predicate holds, else `b`."""

    # --- floats ---------------------------------------------------------------------------------------------------

    @primitive(width_of_first)
    def fadd(self, a: Value, b: Value, fmt: str, rounding: Rounding = "rn", ftz: bool = False, saturate: bool = False) -> Value:
        """Sum, rounded once (f16, bf16, f32, f64)."""

    @primitive(width_of_first)
    def fsub(self, a: Value, b: Value, fmt: str, rounding: Rounding = "rn", ftz: bool = False, saturate: bool = False) -> Value:
        """Difference, rounded once."""

    @primitive(width_of_first)
    def fmul(self, a: Value, b: Value, fmt: str, rounding: Rounding = "rn", ftz: bool = False, saturate: bool = False) -> Value:
        """Product, rounded once."""

    @primitive(width_of_first)
    def ffma(
        self, a: Value, b: Value, c: Value, fmt: str, rounding: Rounding = "rn", ftz: bool = False, saturate: bool = False
    ) -> Value:
        """a*b + c, rounded once (f16, bf16, f32, f64)."""

    @primitive(width_of_first)
    def fdiv(self, a: Value, b: Value, fmt: str, rounding: Rounding = "rn", ftz: bool = False) -> Value:
        """Quotient, rounded once (f32, f64; f16 and bf16 with "rn")."""

    @primitive(width_of_first)
    def fsqrt(self, a: Value, fmt: str, rounding: Rounding = "rn", ftz: bool = False) -> Value:
        """Square root, rounded once (f32, f64; f16 and bf16 with "rn")."""

    @primitive(width_of_first)
    def fneg(self, a: Value, fmt: str, ftz: bool = False) -> Value:
        """The sign flipped, of a NaN too."""

    @primitive(width_of_first)
    def fabs(self, a: Value, fmt: str, ftz: bool = False) -> Value:
        """The sign cleared, of a NaN too."""

    @primitive(width_of_first)
    def fmin(self, a: Value, b: Value, fmt: str, nan: bool = False, ftz: bool = False) -> Value:
        """minimumNumber (the number wins over NaN; -0 < +0), or with `nan` minimum (NaN wins)."""

    @primitive(width_of_first)
    def fmax(self, a: Value, b: Value, fmt: str, nan: bool = False, ftz: bool = False) -> Value:
        """maximumNumber, or with `nan` maximum."""

    @primitive(one_bit)
    def fcompare(self, a: Value, b: Value, op: Comparison, fmt: str, unordered: bool = False, ftz: bool = False) -> Value:
        """Ordered comparison (false on NaN, "ne" too); with `unordered` true on NaN. "num": neither is NaN; "nan": one is."""

    @primitive(one_bit)
    def fclass(self, a: Value, kind: FloatClass, fmt: str) -> Value:
        """Whether the float is of the class (zero is finite, and neither normal nor subnormal)."""

    @primitive(width_of_first)
    def fapprox(self, a: Value, function: Approximate, fmt: str, ftz: bool = False) -> Value:
        """A chip's approximate function, for which the simulator gives the best result it has: within 1 ulp of the true
        one (f16, bf16, f32, f64), with the usual values at 0, infinities and NaN."""

    @primitive(width_of_first)
    def fround(self, a: Value, fmt: str, rounding: Rounding, ftz: bool = False) -> Value:
        """To an integral value in the same format, by rounding mode ("rm" is floor, "rz" truncation)."""

    @primitive(lambda a, source, to, *_, **__: float_width(to))
    def fconvert(
        self, a: Value, source: str, to: str, rounding: Rounding = "rn", ftz: bool = False,
        saturate: Literal["", "unit", "finite"] = "", relu: bool = False,
    ) -> Value:
        """Between float formats, rounded once. `saturate` "unit" clamps to [0, 1], "finite" overflow and infinities to the largest
        finite value; else overflow follows the mode to infinity, or NaN in a format without infinities. A NaN stays
        NaN. `relu` turns negative results into +0; NaN stays NaN. `ftz` flushes f32 subnormals on either side.
        Formats narrower than 8 bits use the low bits of 8."""

    @primitive(lambda a, fmt, bits, *_, **__: bits)
    def float_to_int(self, a: Value, fmt: str, bits: int, signed: bool, rounding: Rounding = "rz", ftz: bool = False) -> Value:
        """To an integer of 8, 16, 32 or 64 bits, clamped to its range; NaN gives 0."""

    @primitive(lambda a, signed, fmt, *_, **__: float_width(fmt))
    def int_to_float(self, a: Value, signed: bool, fmt: str, rounding: Rounding = "rn") -> Value:
        """From an integer of any width, rounded once (f16, bf16, f32, f64)."""

    # --- across the lanes of a wave ---------------------------------------------------------------------------------

    @primitive(lambda a, lane, inactive="undefined": a)
    def read_lane(self, a: Value, lane: Value, inactive: Literal["undefined", "value"] = "undefined") -> Value:
        """What lane number `lane` (32 bits, modulo the wave size) of the same wave holds in `a`. From a lane that is not
        active in this step the result is undefined (poison), or with `inactive` "value" what that lane holds. A `lane` that is
        one for the wave gives one value for the wave."""

    @primitive(lambda p: (32, 32))
    def ballot(self, p: Value) -> tuple[Value, Value]:
        """Bit l of (low word, high word): lane l is active and its predicate holds. Waves of 32 have high word 0."""
        ...

    @primitive(lambda low, high: 1)
    def unballot(self, low: Value, high: Value) -> Value:
        """The predicate that is bit l of (low word, high word) in lane l: the inverse of `ballot` where all lanes are active. The
        words have one value for the wave. Waves of 32 ignore the high word."""

    @primitive(lambda: (32, 32))
    def active(self) -> tuple[Value, Value]:
        """`ballot` of true: which lanes of the wave execute this step."""
        ...

    @primitive(width_of_first)
    def wave_reduce(self, a: Value, op: WaveOp, members: Value) -> Value:
        """Reduction of 32-bit values over the active lanes of the wave that are in the lane's 32-bit mask `members`: groups of
        lanes with masks of their own are reduced at once."""

    @primitive(lambda a, members: 32)
    def match(self, a: Value, members: Value) -> Value:
        """Mask of the active lanes in the lane's `members` whose `a` equals this lane's (waves of 32)."""

    @primitive(lambda values, bits, mapping: tuple(values[0] for _ in range(1 << mapping.output_register_bits)))
    def rearrange(self, values: Sequence[Value], bits: int, mapping: BitMap) -> tuple[Value, ...]:
        """Move elements of `bits` bits between lanes, registers and places in a register by a fixed map of index bits
        (see `fragments.BitMap`). All lanes take part."""
        ...

    # --- where we are -------------------------------------------------------------------------------------------------

    @primitive(one_word)
    def lane_id(self) -> Value:
        """Number of the lane in its wave."""

    @primitive(one_word)
    def wave_id(self) -> Value:
        """Number of the wave in its workgroup."""

    @primitive(one_word)
    def thread_id(self, axis: int) -> Value:
        """Index of the thread in its workgroup; axis 0 runs fastest over lanes."""

    @primitive(one_word)
    def workgroup_id(self, axis: int) -> Value:
        """Index of the workgroup in the grid."""

    @primitive(one_word)
    def workgroup_size(self, axis: int) -> Value:
        """Threads of a workgroup along an axis."""

    @primitive(one_word)
    def grid_size(self, axis: int) -> Value:
        """Workgroups of the grid along an axis."""

    @primitive(one_word)
    def shared_size(self, dynamic: bool) -> Value:
        """Bytes of shared memory of the workgroup: the dynamic part, or all."""

    @primitive(lambda: 64)
    def clock(self) -> Value:
        """A counter that never goes back (instructions executed so far); no measure of time."""

    # --- memory -------------------------------------------------------------------------------------------------------
    # Addresses have 32 or 64 bits. Only active lanes (guard included) access.

    @primitive(lambda space, address, bits, count=1, **_: (bits,) * count)
    def load(
        self, space: Space, address: Value, bits: int, count: int = 1, *,
        order: Order = "weak", scope: Scope = "workgroup", lanes: int | None = None, alignment: int | None = None,
        where: Value | None = None,
    ) -> tuple[Value, ...]:
        """`count` consecutive elements of `bits` bits (8 to 128) from a little-endian address aligned to bits*count/8, or to
        `alignment` bytes (a power of two) where that is given.
        With `lanes`, only the first so many lanes of each wave access, and the others get undefined values. With `where`, only
        lanes in which that predicate holds access, and the others get 0. Always a tuple.
        Has no effect that a second call in the same step would repeat."""
        ...

    @primitive(no_result)
    def store(
        self, space: Space, address: Value, values: Sequence[Value], *,
        order: Order = "weak", scope: Scope = "workgroup", alignment: int | None = None, where: Value | None = None,
    ) -> None:
        """Write the values, all of one width, to consecutive places; aligned to all of them together, or to `alignment` bytes.
        With `where`, only lanes in which that predicate holds write. Where lanes of one wave hit one address, the highest lane
        wins."""

    @primitive(lambda space, address, op, operands, *_, **__: operands[0])
    def atomic(
        self, space: Space, address: Value, op: AtomicOp, operands: Sequence[Value], fmt: str = "", *,
        order: Order = "relaxed", scope: Scope = "device", where: Value | None = None, ftz: bool = False,
    ) -> Value:
        """Read, modify, write as one; gives the old value. Width is that of the operands (16, 32, 64; 128 for exchange and
        compare_exchange). "compare_exchange" takes (expected, new), and with a format compares as floats; "inc" is
        old >= b ? 0 : old+1, "dec" is old == 0 or old > b ? b : old-1, "sub_from" is b - old, "mask_or" takes (mask, b) and is
        old & ~mask | b, "wrap" takes (a, b) and is old >= a ? old-a : old+b; "fadd", "fmin", "fmax" take a format, or a packed one
        ("f16x2", "bf16x2"); `ftz` is for those of one element. Lanes go one after the other, in an order that the seed permutes;
        with `where`, only those in which that predicate holds, and the others get 0."""

    @primitive(lambda space, address, bits, **_: bits)
    def load_reserved(
        self, space: Space, address: Value, bits: int, *, order: Order = "relaxed", scope: Scope = "device"
    ) -> Value:
        """A strong load of 32 or 64 bits of global memory. Each active lane then has a reservation on the aligned 8 bytes at its
        address, and no other. Any store or atomic to these bytes, the lane's own included, ends it."""

    @primitive(one_bit)
    def store_conditional(
        self, space: Space, address: Value, value: Value, *, order: Order = "relaxed", scope: Scope = "device"
    ) -> Value:
        """Write the value in each active lane that has a reservation there, lane after lane in an order that the seed permutes; the
        predicate says which did. Of lanes that reserved the same bytes one does. Ends the reservations of all active lanes."""

    @primitive(lambda: 64)
    def argument_address(self) -> Value:
        """The global address of the argument block, where the program has its arguments in memory."""

    @primitive(no_result)
    def fence(self, order: Order = "acq_rel", scope: Scope = "device") -> None:
        """Orders accesses of the workgroup with those of others, as the race check sees them: after a "release" its atomics and
        strong stores release what was done before the fence; an "acquire" acquires what its strong loads and atomics have seen
        released. "acq_rel" and "seq_cst" are both."""

    @primitive(lambda address, space: 64)
    def to_generic(self, address: Value, space: Space) -> Value:
        """The generic address (64 bits) of an address within a space."""

    @primitive(lambda address, space, bits=64: bits)
    def from_generic(self, address: Value, space: Space, bits: int = 64) -> Value:
        """The address within the space, of `bits` bits, of a generic address."""

    @primitive(one_bit)
    def is_space(self, address: Value, space: Space) -> Value:
        """Whether a generic address lies in the space."""

    # --- asynchronous copies, in groups counted per thread --------------------------------------------------------------

    @primitive(no_result)
    def copy_async(
        self, destination_space: Space, destination: Value, source_space: Space, source: Value, size: int,
        source_size: Value | None = None,
    ) -> None:
        """Start copying `size` bytes (a Python int, 4, 8 or 16; both sides aligned to it); with `source_size` (32 bits) only
        that many bytes are read, the rest becomes zero. The bytes arrive at a moment unknown before a wait covers them: one for
        the copy's group or, where the instruction has an `Issue` that settles, a `Wait` that covers this event."""

    @primitive(no_result)
    def commit_group(self) -> None:
        """The thread's copies since its last commit become its newest group."""

    @primitive(no_result)
    def wait_group(self, pending: int) -> None:
        """Until at most the `pending` newest groups of the thread are unfinished (0: all committed ones)."""

    @primitive(no_result)
    def wait_all(self) -> None:
        """Until all copies of the thread are finished, committed or not."""

    # --- the mask stack of a wave with one program counter (SimulatedChip.mask_stack), without guard and destinations -------

    @primitive(no_result)
    def push_mask(self, p: Value) -> None:
        """Lanes where the predicate does not hold sleep until the `pop_mask` of this push: the wave goes on without them. They take
        no part in anything, and a branch does not ask them; where no lane is awake, a branch on a condition falls through."""

    @primitive(no_result)
    def pop_mask(self) -> None:
        """The lanes are awake again that were before the last push."""

    # --- faults -----------------------------------------------------------------------------------------------------------

    @primitive(no_result)
    def trap(self, message: str) -> None:
        """Stop the launch with an error at the active lanes, if any."""

    @primitive(no_result)
    def require(self, p: Value, message: str) -> None:
        """Stop the launch with `message` unless the predicate holds in all active lanes (an illegal operand value)."""


PRIMITIVES = tuple(
    name for part in reversed(Algebra.__mro__) for name, method in vars(part).items() if hasattr(method, "widths")
)
"""The names of all primitives."""
