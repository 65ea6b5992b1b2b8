"""Element, pointer and tile types as kernel authors see them: `tl.float32`, `tl.pointer_type(tl.int8)`, `x.dtype.is_floating()`.

The formats themselves stand in `tilefw.api.dtypes`; this file gives them the names and questions of `triton.language`.
"""

from __future__ import annotations

import math
import sys
from enum import Enum
from typing import Any, ClassVar, Self, cast

from tilefw.api.dtypes import DTYPES, DType
from tilefw.api.dtypes import dtype as find
from tilefw.api.errors import CompileError
from tilefw.language.constants import constexpr_type, unwrap

TRITON_MAX_TENSOR_NUMEL = 1048576


def _package() -> str:
    """The name by which the program imports this language."""
    return "triton.language" if sys.modules.get("triton.language") is sys.modules["tilefw.language"] else "tilefw.language"


class dtype:  # noqa: N801  (Triton's spelling)
    """An element type: compares and hashes by name; `str()` is Triton's short name (`fp32`, `int8`, `fp8e4nv`).

    `primitive_bitwidth` is the width of a value in bits, `itemsize` the bytes that an element takes in memory (types
    narrower than a byte take a whole one). Integers also have `int_bitwidth` and `int_signedness`, floats
    `fp_mantissa_width` and `exponent_bias`.
    """

    class SIGNEDNESS(Enum):
        SIGNED = 0
        UNSIGNED = 1

    class KIND(Enum):
        """Order of kinds in promotion: a Python scalar of a lower or equal kind takes the tile's type."""

        BOOLEAN = 0
        INTEGRAL = 1
        FLOATING = 2

    __slots__ = ("_format", "exponent_bias", "fp_mantissa_width", "int_bitwidth", "int_signedness", "itemsize", "name",
                 "primitive_bitwidth")

    # The names of element types by kind, as programs list them.
    SINT_TYPES: ClassVar[list[str]] = ["int8", "int16", "int32", "int64"]
    UINT_TYPES: ClassVar[list[str]] = ["int1", "uint8", "uint16", "uint32", "uint64"]
    FP_TYPES: ClassVar[list[str]] = ["fp8e4b15", "fp8e4nv", "fp8e4b8", "fp8e5", "fp8e5b16", "fp16", "bf16", "fp32", "fp64"]
    STANDARD_FP_TYPES: ClassVar[list[str]] = ["fp16", "bf16", "fp32", "fp64"]
    OTHER_TYPES: ClassVar[list[str]] = ["void"]

    _made: ClassVar[dict[str, dtype]] = {}

    def __new__(cls, *args: Any, **keywords: Any) -> Self:
        # One object a name, so that `x.dtype is tl.float32` holds as in Triton; pointers and tiles compare by `==`.
        made = dtype._made.get(unwrap(args[0])) if cls is dtype and args and isinstance(unwrap(args[0]), str) else None
        return object.__new__(cls) if made is None else cast(Self, made)

    def __init__(self, name: str) -> None:
        name = unwrap(name)
        if name not in DTYPES and name != "void":
            raise CompileError(f"there is no element type named {name!r}", "TFW0205", note="types: " + ", ".join(DTYPES))
        self.name: str = name
        self._format: DType | None = DTYPES.get(name)
        dtype._made[name] = self
        if self._format is None:
            return
        self.primitive_bitwidth: int = self._format.bits
        self.itemsize: int = self._format.storage_bits // 8
        if self._format.is_int:
            self.int_bitwidth: int = self._format.bits
            self.int_signedness = dtype.SIGNEDNESS.SIGNED if self._format.is_signed else dtype.SIGNEDNESS.UNSIGNED
        else:
            self.fp_mantissa_width: int = self._format.mantissa_bits
            self.exponent_bias: int = self._format.bias

    def __eq__(self, other: object) -> bool:
        other = unwrap(other)
        return self is other or (isinstance(other, dtype) and self.name == other.name)

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"{_package()}.{self.codegen_name()}"

    def codegen_name(self) -> str:
        """The long spelling: `float32` for `fp32`, `bfloat16` for `bf16`."""
        for short, long in (("fp", "float"), ("bf", "bfloat")):
            if self.name.startswith(short):
                return long + self.name[2:]
        return self.name

    @property
    def scalar(self) -> dtype:
        """The type of one element."""
        return self

    def kind(self) -> dtype.KIND:
        """Where this type stands in promotion."""
        if self.is_bool():
            return dtype.KIND.BOOLEAN
        return dtype.KIND.INTEGRAL if self.is_int() else dtype.KIND.FLOATING

    def is_floating(self) -> bool:
        return self._format is not None and self._format.is_float

    def is_standard_floating(self) -> bool:
        """fp16, bf16, fp32 or fp64: the float types that have arithmetic of their own."""
        return self.name in ("fp16", "bf16", "fp32", "fp64")

    def is_int(self) -> bool:
        return self._format is not None and self._format.is_int

    def is_int_signed(self) -> bool:
        return self.is_int() and self.int_signedness is dtype.SIGNEDNESS.SIGNED

    def is_int_unsigned(self) -> bool:
        return self.is_int() and self.int_signedness is dtype.SIGNEDNESS.UNSIGNED

    def is_bool(self) -> bool:
        return self.name == "int1"

    def is_narrow_float(self) -> bool:
        """A float below 16 bits (fp8, fp6, fp4 forms): loads, stores and casts, but no arithmetic."""
        return self.is_floating() and self.primitive_bitwidth < 16

    def is_fp8(self) -> bool:
        return self.name.startswith("fp8")

    def is_fp8e4nv(self) -> bool:
        return self.name == "fp8e4nv"

    def is_fp8e4b8(self) -> bool:
        return self.name == "fp8e4b8"

    def is_fp8e4b15(self) -> bool:
        return self.name == "fp8e4b15"

    def is_fp8e5(self) -> bool:
        return self.name == "fp8e5"

    def is_fp8e5b16(self) -> bool:
        return self.name == "fp8e5b16"

    def is_fp16(self) -> bool:
        return self.name == "fp16"

    def is_bf16(self) -> bool:
        return self.name == "bf16"

    def is_fp32(self) -> bool:
        return self.name == "fp32"

    def is_fp64(self) -> bool:
        return self.name == "fp64"

    def is_int1(self) -> bool:
        return self.name == "int1"

    def is_int8(self) -> bool:
        return self.name == "int8"

    def is_int16(self) -> bool:
        return self.name == "int16"

    def is_int32(self) -> bool:
        return self.name == "int32"

    def is_int64(self) -> bool:
        return self.name == "int64"

    def is_uint8(self) -> bool:
        return self.name == "uint8"

    def is_uint16(self) -> bool:
        return self.name == "uint16"

    def is_uint32(self) -> bool:
        return self.name == "uint32"

    def is_uint64(self) -> bool:
        return self.name == "uint64"

    def is_void(self) -> bool:
        return self.name == "void"

    def is_ptr(self) -> bool:
        return False

    def is_const(self) -> bool:
        """Whether this is a pointer that must not be stored through."""
        return False

    def is_block(self) -> bool:
        """Whether this is the type of a tile rather than of one element."""
        return False

    def get_int_max_value(self) -> int:
        """The largest value of an integer type."""
        return 2 ** (self.int_bitwidth - self.is_int_signed()) - 1

    def get_int_min_value(self) -> int:
        """The smallest value of an integer type."""
        return -(2 ** (self.int_bitwidth - 1)) if self.is_int_signed() else 0

    def with_element_ty(self, element_ty: dtype) -> dtype:
        """This shape with another element type; a scalar type simply becomes the other."""
        return element_ty

    @staticmethod
    def is_dtype(name: str) -> bool:
        """Whether `name` is the short name of an element type."""
        return name in DTYPES or name == "void"


class pointer_type(dtype):  # noqa: N801
    """A pointer to elements of `element_ty`; `const=True` forbids stores through it."""

    __slots__ = ("address_space", "const", "element_ty")

    def __init__(self, element_ty: dtype, address_space: str = "global", const: bool = False) -> None:
        element_ty = unwrap(element_ty)
        if not isinstance(element_ty, dtype):
            raise CompileError(f"pointer_type needs an element type, not {element_ty!r}", "TFW0205")
        self.element_ty = element_ty
        self.address_space = unwrap(address_space)
        self.const = bool(unwrap(const))
        self.name = f"{'const_' if self.const else ''}pointer<{element_ty}>"
        self._format = None
        self.primitive_bitwidth = 64
        self.itemsize = 8

    def __eq__(self, other: object) -> bool:
        other = unwrap(other)
        return isinstance(other, pointer_type) and (self.element_ty, self.address_space, self.const) == (
            other.element_ty, other.address_space, other.const)

    def __hash__(self) -> int:
        return hash((self.name, self.address_space))

    def __repr__(self) -> str:
        return self.name

    def is_ptr(self) -> bool:
        return True

    def is_const(self) -> bool:
        return self.const


class block_type(dtype):  # noqa: N801
    """The type of a tile: `element_ty` and `shape`; each extent a power of two, at most TRITON_MAX_TENSOR_NUMEL elements."""

    __slots__ = ("element_ty", "numel", "shape")

    def __init__(self, element_ty: dtype, shape: Any) -> None:
        self.element_ty = unwrap(element_ty)
        self.shape: tuple[int, ...] = tuple(unwrap(extent) for extent in unwrap(shape))
        self.numel = math.prod(self.shape)
        self.name = f"<{list(self.shape)}, {self.element_ty}>"
        self._format = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, block_type) and self.shape == other.shape and self.element_ty == other.element_ty

    def __hash__(self) -> int:
        return hash((self.shape, self.element_ty))

    def __repr__(self) -> str:
        return self.name

    @property
    def scalar(self) -> dtype:
        return self.element_ty

    @property
    def nbytes(self) -> int:
        """Bytes of all elements in memory."""
        return self.numel * self.element_ty.itemsize

    def is_block(self) -> bool:
        return True

    def get_block_shapes(self) -> tuple[int, ...]:
        return self.shape

    def with_element_ty(self, element_ty: dtype) -> block_type:
        return block_type(element_ty, self.shape)


void = dtype("void")
int1 = dtype("int1")
int4, int8, int16, int32, int64 = (dtype(f"int{bits}") for bits in (4, 8, 16, 32, 64))
uint4, uint8, uint16, uint32, uint64 = (dtype(f"uint{bits}") for bits in (4, 8, 16, 32, 64))
float4e2m1 = dtype("fp4e2m1")
float6e2m3 = dtype("fp6e2m3")
float6e3m2 = dtype("fp6e3m2")
float8e5 = dtype("fp8e5")
float8e5b16 = dtype("fp8e5b16")
float8e4nv = dtype("fp8e4nv")
float8e4b8 = dtype("fp8e4b8")
float8e4b15 = dtype("fp8e4b15")
float16 = dtype("fp16")
bfloat16 = dtype("bf16")
float32 = dtype("fp32")
float64 = dtype("fp64")
pi32_t = pointer_type(int32)


class const:  # noqa: N801
    """As a parameter's annotation: the pointer's data is never stored to by this kernel."""


def str_to_ty(name: str, c: Any = None) -> Any:
    """The type that a signature writes as `name`: `i32`, `*fp16`, `*kfp32` (to const data), `constexpr` of the value `c`."""
    if name == "constexpr":
        return constexpr_type(c)
    if name.startswith("*"):
        return pointer_type(str_to_ty(name[1:].removeprefix("k")), const=name.startswith("*k"))
    return dtype(name) if name == "void" else dtype(find(name).name)
