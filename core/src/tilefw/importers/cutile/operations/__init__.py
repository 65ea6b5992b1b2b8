"""What the operations of Tile IR mean: `OPERATIONS` maps each name to the function that makes its ops.

A meaning takes the translation and the operation, and gives the operation's result, a list of several, or None.
"""

from collections.abc import Mapping
from types import MappingProxyType

from tilefw.frontend.builtins.registry import Meaning
from tilefw.importers.cutile.operations import (
    combine,
    constants,
    control,
    conversions,
    elementwise,
    grid,
    matrix,
    pointers,
    shape,
    views,
)

_FILES = (combine, constants, control, conversions, elementwise, grid, matrix, pointers, shape, views)
OPERATIONS: Mapping[str, Meaning] = MappingProxyType({name: given for file in _FILES for name, given in file.meaning.of.items()})
