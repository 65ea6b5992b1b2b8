"""The functions of Triton 3.9's libdevice that tilefw does not serve yet. A name leaves this list when it is built."""

from __future__ import annotations

LIBDEVICE: tuple[str, ...] = (
    "jn", "yn",
)
