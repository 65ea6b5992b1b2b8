"""What the operations of Triton IR mean: `OPERATIONS` maps each name to the function that makes its ops.

A meaning takes the translation and the statement, and gives the statement's result, a list of several, or None.
"""

from collections.abc import Mapping
from types import MappingProxyType

from tilefw.frontend.builtins.registry import Meaning
from tilefw.importers.triton_ir.operations import (
    atomics,
    combine,
    constants,
    control,
    debug,
    descriptors,
    elementwise,
    external,
    matrix,
    memory,
    shape,
)

_FILES = (atomics, combine, constants, control, debug, descriptors, elementwise, external, matrix, memory, shape)
OPERATIONS: Mapping[str, Meaning] = MappingProxyType({name: given for file in _FILES for name, given in file.meaning.of.items()})
