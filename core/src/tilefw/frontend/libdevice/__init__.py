"""The functions of libdevice that are made of rows: compositions in tile IR, one file for each family.

A function is written once for float32 and float64, in the operators of `term.py` and the pairs of `pairs.py`; every target that
serves the rows serves it. `signatures.py` says how one is defined.
"""

from tilefw.frontend.builtins.registry import Meaning
from tilefw.frontend.libdevice import (
    angles,
    bessel,
    bessel_orders,
    conversions,
    error_function,
    exponentials,
    floats,
    gamma,
    integers,
    inverse_error,
    roots,
    rounding,
)

_FAMILIES = (
    angles, bessel, bessel_orders, conversions, error_function, exponentials, floats, gamma, integers, inverse_error, roots,
    rounding,
)
FUNCTIONS: dict[str, Meaning] = {name: given for family in _FAMILIES for name, given in family.define.meaning.of.items()}
