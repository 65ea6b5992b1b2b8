"""Where a planted bug changes a kernel's IR and cannot be seen, with the reason: an entry that is found all the same is wrong."""

from __future__ import annotations

UNSEEN: dict[tuple[str, str], str] = {}
"""By bug and kernel."""
