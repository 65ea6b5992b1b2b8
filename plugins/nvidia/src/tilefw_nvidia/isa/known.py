"""PTX instructions that exist and that the table does not have yet, with a word of why (PTX ISA, "Instruction Set")."""

from __future__ import annotations

_HOPPER = "it needs sm_90; this table serves sm_80"
_BLACKWELL = "it needs sm_100; this table serves sm_80"
_TEXTURE = "textures and surfaces are not modelled"
_CALLS = "functions must be inlined"
_VIDEO = "video instructions are not modelled"

NOT_SERVED_OPCODES: dict[str, str] = {
    **dict.fromkeys(["tex", "tld4", "txq", "istypep", "suld", "sust", "sured", "suq"], _TEXTURE),
    **dict.fromkeys(["call", "alloca", "stacksave", "stackrestore"], _CALLS),
    **dict.fromkeys(
        ["wgmma", "stmatrix", "multimem", "mapa", "getctarank", "elect", "griddepcontrol", "setmaxnreg", "tensormap", "mbarrier"],
        _HOPPER,
    ),
    **dict.fromkeys(["tcgen05", "clusterlaunchcontrol"], _BLACKWELL),
    **dict.fromkeys(
        [
            "vadd",
            "vsub",
            "vabsdiff",
            "vmin",
            "vmax",
            "vshl",
            "vshr",
            "vmad",
            "vset",
            "vadd2",
            "vsub2",
            "vavrg2",
            "vabsdiff2",
            "vmin2",
            "vmax2",
            "vset2",
            "vadd4",
            "vsub4",
            "vavrg4",
            "vabsdiff4",
            "vmin4",
            "vmax4",
            "vset4",
        ],
        _VIDEO,
    ),
    "wmma": "mma.sync is the form with a documented fragment layout",
    "fns": "",
    "applypriority": "",
    "discard": "",
    "pmevent": "",
    "brkpt": "",
}
