"""PTX instructions that exist and that the table does not have yet, with a word of why (PTX ISA, "Instruction Set")."""

from __future__ import annotations

_TENTH = "it is of the tenth generation, which no chip here is"
_TEXTURE = "textures and surfaces are not modelled"
_CALLS = "only functions that the module defines are called, by `call` and `call.uni`"
_VIDEO = "scalar video instructions are not modelled; those of four bytes and of two halves are"

NOT_SERVED_OPCODES: dict[str, str] = {
    **dict.fromkeys(["tex", "tld4", "txq", "istypep", "suld", "sust", "sured", "suq"], _TEXTURE),
    **dict.fromkeys(["call", "alloca", "stacksave", "stackrestore"], _CALLS),
    **dict.fromkeys(["tcgen05", "clusterlaunchcontrol"], _TENTH),
    **dict.fromkeys(["vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr", "vmad", "vset"], _VIDEO),
    "wmma": "mma.sync is the form with a documented fragment layout",
    "fns": "",
    "applypriority": "",
    "discard": "",
    "pmevent": "",
    "brkpt": "",
}
