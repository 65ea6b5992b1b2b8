"""What the functions of the language mean: `MEANINGS` maps a builtin's name to the function that builds its IR.

A meaning takes the builder and then the builtin's own parameters, bound to values; its file has the name of the
language file that documents it. `test_builtins.py` holds that the two agree.
"""

from collections.abc import Mapping
from types import MappingProxyType

from tilefw.frontend.builtins import (
    atomics,
    block_pointers,
    counting,
    creation,
    debug,
    distributed,
    elementwise,
    hints,
    inline_assembly,
    library,
    machine,
    math,
    matrix,
    memory,
    random,
    rearrange,
    reduction,
    scaled_matrix,
    scan,
    shape,
    sorting,
    tensor_descriptors,
)
from tilefw.frontend.builtins.registry import Meaning

_FILES = (
    atomics, block_pointers, counting, creation, debug, distributed, elementwise, hints, inline_assembly, library, machine,
    math, matrix, memory, random, rearrange, reduction, scaled_matrix, scan, shape, sorting, tensor_descriptors,
)
MEANINGS: Mapping[str, Meaning] = MappingProxyType({name: given for file in _FILES for name, given in file.meaning.of.items()})

__all__ = [
    "MEANINGS", "atomics", "block_pointers", "counting", "creation", "debug", "distributed", "elementwise", "hints",
    "inline_assembly", "library", "machine", "math", "matrix", "memory", "random", "rearrange", "reduction", "scaled_matrix",
    "scan", "shape", "sorting", "tensor_descriptors",
]
