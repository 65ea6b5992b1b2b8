"""Bytecode of Tile IR, as cuTile Python writes it, to tile IR.

`bytecode_cursor.py` reads numbers, `bytecode_file.py` sections and tables, `instructions.py` the operations of functions by the
table of `opcodes.py`; what was read stands in `bytecode_tree.py`. `bytecode_translation.py` goes through a kernel's operations by a
table of meanings, which the files of `operations/` fill. `tile_kernel.py` makes the module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp


def parse(data: bytes, name: str = "<bytes>") -> ModuleOp:
    """A verified module of tile IR from bytecode; `name` is the file's in messages.

    Raises IRError (TFW0407) for bytes that are malformed, UnsupportedError (TFW0408) for what is not imported, CompileError for
    what our front end refuses as well.
    """
    from tilefw.importers.cutile.tile_kernel import module

    return module(data, name)
