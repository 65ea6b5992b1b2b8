"""Triton's IR (`.ttir`, as Triton 3.9 prints it) to tile IR.

`scanner.py` finds words in the text, `reader.py` makes statements of them (`tree.py`), and `translation.py` goes through a kernel's
statements by a table of operations, which the files of `operations/` fill. `kernel.py` makes the module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp


def parse(text: str, name: str = "<text>") -> ModuleOp:
    """A verified module of tile IR from the text of Triton's; `name` is the file's in messages.

    Raises IRError (TFW0401) for text that is malformed, UnsupportedError (TFW0406) for what is not imported, CompileError for what
    our front end refuses as well.
    """
    from tilefw.importers.triton_ir.kernel import module

    return module(text, name)
