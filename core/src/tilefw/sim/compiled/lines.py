"""LLVM's lines of one loop body: every value is a vector of neighbouring lanes, or one number where no lane has its own."""

from __future__ import annotations

import struct
from typing import NamedTuple


class Printed(NamedTuple):
    """An operand as LLVM spells it, and the type of one lane of it ("i32", "float")."""

    text: str
    element: str

    @property
    def bits(self) -> int:
        """The width of one lane."""
        return WIDTHS.get(self.element) or int(self.element[1:])


WIDTHS = {"half": 16, "float": 32, "double": 64}
FLOATS = {16: "half", 32: "float", 64: "double"}
_SUFFIXES = {"half": "f16", "float": "f32", "double": "f64"}


class NotPrinted(Exception):
    """There are no lines for what is asked: NumPy executes it."""


class Lines:
    """Lines as they are written. `lanes` is how many lanes a value has, 0 where it is one number. `refusals` are predicates: where
    one of them holds, the compiled form does not tell what NumPy's gives. Names of values begin with `prefix`."""

    def __init__(self, lanes: int, prefix: str = "v") -> None:
        self.lanes = lanes
        self.text: list[str] = []
        self.refusals: list[Printed] = []
        self.declared: set[str] = set()
        self._prefix, self._next = prefix, 0

    def type(self, element: str) -> str:
        """A value's type."""
        return f"<{self.lanes} x {element}>" if self.lanes else element

    def name(self) -> str:
        self._next += 1
        return f"%{self._prefix}{self._next}"

    def put(self, element: str, line: str) -> Printed:
        """A new value: what `line` makes."""
        name = self.name()
        self.text.append(f"{name} = {line}")
        return Printed(name, element)

    def literal(self, value: int, element: str) -> Printed:
        """The same integer in every lane."""
        bits = int(element[1:])
        value &= (1 << bits) - 1
        spelled = ("true" if value else "false") if bits == 1 else str(value)
        return Printed(f"splat ({element} {spelled})" if self.lanes else spelled, element)

    def real(self, value: float, element: str) -> Printed:
        """The same float, one that the format holds exactly, in every lane."""
        spelled = f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
        return Printed(f"splat ({element} {spelled})" if self.lanes else spelled, element)

    def binary(self, operation: str, a: Printed, b: Printed) -> Printed:
        return self.put(a.element, f"{operation} {self.type(a.element)} {a.text}, {b.text}")

    def cast(self, operation: str, a: Printed, element: str) -> Printed:
        return self.put(element, f"{operation} {self.type(a.element)} {a.text} to {self.type(element)}")

    def compare(self, operation: str, a: Printed, b: Printed) -> Printed:
        """`operation` is LLVM's, "icmp ult" or "fcmp olt"."""
        return self.put("i1", f"{operation} {self.type(a.element)} {a.text}, {b.text}")

    def select(self, p: Printed, a: Printed, b: Printed) -> Printed:
        kind = self.type(a.element)
        return self.put(a.element, f"select {self.type('i1')} {p.text}, {kind} {a.text}, {kind} {b.text}")

    def call(self, function: str, *operands: Printed, flag: str = "") -> Printed:
        """An intrinsic of LLVM, `function` without its types; `flag` is a last operand of one bit."""
        element = operands[0].element
        kind, suffix = self.type(element), _SUFFIXES.get(element, element)
        name = f"@llvm.{function}.{f'v{self.lanes}' if self.lanes else ''}{suffix}"
        taken = ", ".join([kind] * len(operands) + ["i1"] * bool(flag))
        self.declared.add(f"declare {kind} {name}({taken})")
        given = ", ".join([f"{kind} {o.text}" for o in operands] + [f"i1 {flag}"] * bool(flag))
        return self.put(element, f"call {kind} {name}({given})")

    # --- what is often said ------------------------------------------------------------------------------------------------

    def as_float(self, a: Printed) -> Printed:
        """The float of a pattern of 16 (fp16), 32 or 64 bits."""
        return self.cast("bitcast", a, FLOATS[a.bits])

    def as_bits(self, a: Printed) -> Printed:
        return self.cast("bitcast", a, f"i{a.bits}")

    def widened(self, a: Printed, element: str) -> Printed:
        """A float in a format that is at least as wide."""
        return a if a.element == element else self.cast("fpext", a, element)

    def resized(self, a: Printed, bits: int) -> Printed:
        """An integer without its sign, of another width."""
        if a.bits == bits:
            return a
        return self.cast("zext" if bits > a.bits else "trunc", a, f"i{bits}")

    def both(self, a: Printed, b: Printed) -> Printed:
        return self.binary("and", a, b)

    def either(self, a: Printed, b: Printed) -> Printed:
        return self.binary("or", a, b)

    def inverted(self, a: Printed) -> Printed:
        return self.binary("xor", a, self.literal(-1, a.element))

    def is_nan(self, a: Printed) -> Printed:
        return self.compare("fcmp uno", a, a)

    def refuse_nan(self, a: Printed) -> Printed:
        """Which NaN arithmetic gives is the processor's and the library's affair: NumPy's form is asked where one comes out."""
        self.refusals.append(self.is_nan(a))
        return a
