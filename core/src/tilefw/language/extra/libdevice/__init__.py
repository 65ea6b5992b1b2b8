"""`tl.extra.libdevice`: Triton's functions of that name.

They take exactly the types that their docstrings name (nothing is promoted); tiles and scalars broadcast. A conversion to an
integer clamps, and gives 0 for NaN.
"""

from __future__ import annotations

from tilefw.language.extra.libdevice.conversions import *  # noqa: F403
from tilefw.language.extra.libdevice.floats import *  # noqa: F403
from tilefw.language.extra.libdevice.functions import *  # noqa: F403
from tilefw.language.extra.libdevice.integers import *  # noqa: F403
from tilefw.language.extra.libdevice.rounding import *  # noqa: F403
from tilefw.language.extra.libdevice.rows import *  # noqa: F403
from tilefw.language.extra.libdevice.special import *  # noqa: F403
