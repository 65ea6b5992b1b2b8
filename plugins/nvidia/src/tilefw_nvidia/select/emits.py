"""What a table of selection rules holds: rules with the instructions that they need."""

from __future__ import annotations

from dataclasses import dataclass

from tilefw.api.simt import Rule


@dataclass(frozen=True, slots=True)
class Emits:
    """A rule with the instructions that it emits beside moves."""

    opcodes: tuple[str, ...]
    rule: Rule


Table = dict[str, Emits]
