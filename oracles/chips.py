"""The chips that the corpus is compiled for: how Triton calls each, and which of its outputs runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Chip:
    """`target` is tilefw's name. `triton` are the arguments of Triton's GPUTarget, its last the lanes of a wave; `form` names what
    runs among Triton's outputs, `text` its assembly."""

    target: str
    triton: tuple[str, int | str, int]
    form: str
    text: str

    @property
    def lanes(self) -> int:
        return self.triton[2]


SM80 = Chip("nvidia-sm80", ("cuda", 80, 32), "ptx", "ptx")
SM86 = Chip("nvidia-sm86", ("cuda", 86, 32), "ptx", "ptx")
SM89 = Chip("nvidia-sm89", ("cuda", 89, 32), "ptx", "ptx")
SM90A = Chip("nvidia-sm90a", ("cuda", 90, 32), "ptx", "ptx")
GFX942 = Chip("amd-cdna3", ("hip", "gfx942", 64), "hsaco", "amdgcn")
GFX950 = Chip("amd-cdna4", ("hip", "gfx950", 64), "hsaco", "amdgcn")

NVIDIA = (SM80, SM86, SM89, SM90A)
AMD = (GFX942, GFX950)
CHIPS = (*NVIDIA, *AMD)
