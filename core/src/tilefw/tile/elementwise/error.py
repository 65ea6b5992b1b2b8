"""How far a result may be from the exact one: the rules as data, and what each says, in ulp of the op's own format.

The numbers are those that two public specifications give and conformance suites enforce: the Vulkan specification,
appendix "Precision and Operation of SPIR-V Instructions", and the OpenCL C specification's "Relative Error as ULPs" as
OpenCL-CTS checks it (`test_conformance/math_brute_force/function_list.cpp`). Where both speak, the wider one is taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Ulp:
    """Within `constant` + `per_x`·|x| ulp of the exact result; or, for |x| in `window`, within `absolute`.

    Beyond `within` (|y| of the last operand) the result is free. `drift`·|x| is an absolute allowance for the argument
    reduction of periodic functions.
    """

    constant: float = 0.0
    per_x: float = 0.0
    absolute: float = 0.0
    window: tuple[float, float] | None = None
    within: tuple[float, float] | None = None
    drift: float = 0.0


@dataclass(frozen=True, slots=True)
class ErrorRule:
    """The error of one op: `exact` (representable as it is), `rounded` (correctly), or `ulp` with a rule per format.

    `wide` holds for f64, `single` for f32, `narrow` for all smaller formats. `flush` lets subnormal operands and results
    count as zero (Vulkan: "denormals may be flushed" where no mode is declared); it is set for approximations only, as
    every chip of ours keeps subnormals in correctly rounded arithmetic. `spread` says how operand errors travel:
    `corners` evaluates the op at the ends of its operands' intervals, right for whatever is monotonic in each operand;
    `unit` passes the error on (|f'| <= 1); `none` stops at the first inexact operand, whose result is free.
    """

    kind: Literal["exact", "rounded", "ulp"]
    wide: Ulp | None = None
    single: Ulp | None = None
    narrow: Ulp | None = None
    flush: bool = False
    spread: Literal["corners", "unit", "none"] = "corners"
    jumps: bool = False

    def ulps(self, mantissa_bits: int) -> Ulp:
        """The rule for a format, by its mantissa."""
        found = self.wide if mantissa_bits > 23 else self.single if mantissa_bits == 23 else self.narrow
        assert found is not None
        return found


def within(
    wide: float, single: Ulp | float, narrow: Ulp | float, spread: Literal["corners", "unit", "none"] = "corners"
) -> ErrorRule:
    """An approximation's rule for f64, f32 and narrower formats; plain numbers are ulp. Flushing is allowed."""
    one, few = (rule if isinstance(rule, Ulp) else Ulp(rule) for rule in (single, narrow))
    return ErrorRule("ulp", Ulp(wide), one, few, flush=True, spread=spread)


EXACT = ErrorRule("exact")
JUMPING = ErrorRule("exact", jumps=True)  # floor and its kin: exact, but an inexact operand may fall on either side
ROUNDED = ErrorRule("rounded")
LIPSCHITZ = ErrorRule("exact", spread="unit")
REMAINDER = ErrorRule("exact", spread="none", jumps=True)

DIVIDE = within(2.5, Ulp(2.5, within=(2.0**-126, 2.0**126)), Ulp(2.5, within=(2.0**-14, 2.0**14)))  # Vulkan, OpFDiv
SQRT = within(3.0, 3.0, 3.0)  # OpenCL embedded 3, full 0; Vulkan inherits from 1 / rsqrt
RSQRT = within(2.0, 2.0, 2.0)  # Vulkan
EXP = within(3.0, Ulp(3.0, per_x=2.0), Ulp(1.0, per_x=2.0))  # Vulkan, 3 + 2|x| and 1 + 2|x|
LOG = within(3.0, Ulp(3.0, absolute=2.0**-21, window=(0.5, 2.0)), Ulp(3.0, absolute=2.0**-7, window=(0.5, 2.0)))  # Vulkan
# Vulkan: absolute 2^-11 (f16: 2^-7) in [-pi, pi], nothing beyond. There a reduction in the format itself is allowed for:
# x - k·2pi with a relative error of four units of the format.
SINE = within(4.0, Ulp(absolute=2.0**-11, drift=2.0**-22), Ulp(absolute=2.0**-7, drift=2.0**-9), spread="unit")
TANH = within(5.0, 5.0, 2.0)  # OpenCL
ERF = within(16.0, 16.0, 4.0)  # OpenCL
POW = within(16.0, 16.0, 4.0)  # OpenCL
LOG1P = within(2.0, 2.0, 2.0)  # OpenCL
EXPM1 = within(3.0, 3.0, 2.0)  # OpenCL
