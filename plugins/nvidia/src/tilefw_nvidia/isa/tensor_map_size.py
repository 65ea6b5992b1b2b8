"""What a tensor map takes in memory, for those who make room for one without knowing its fields."""

from __future__ import annotations

BYTES = 128  # PTX ISA, "Tensor-map"
ALIGNMENT = 64  # CUDA Driver API, cuTensorMapEncodeTiled
