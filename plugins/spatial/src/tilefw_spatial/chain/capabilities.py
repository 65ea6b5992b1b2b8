"""What the vector unit's chains serve, as capabilities: every claim is a test (`tests/chain`), and there is no other."""

from tilefw_spatial.capabilities import ELEMENTS, ELEMENTWISE, FLOATS, INTEGERS, SMALL_FLOATS

CAPABILITIES = ELEMENTWISE

__all__ = ["CAPABILITIES", "ELEMENTS", "FLOATS", "INTEGERS", "SMALL_FLOATS"]
