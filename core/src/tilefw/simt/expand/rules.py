"""All expansion rules in one table, by row key."""

from __future__ import annotations

from tilefw.simt.expand import division, exact, floats, formats, halves, narrow, transcendental, wide
from tilefw.simt.expand.builder import ExpansionBuilder, Legal, Rule

# Earlier subjects win: a narrow integer is widened before any rule for 32 bits is asked.
_SUBJECTS = (narrow, wide, division, formats, halves, floats, exact, transcendental)

RULES: dict[str, Rule] = {}
"""Every expansion, by row key (`exp.f32`)."""
for _subject in reversed(_SUBJECTS):
    RULES.update(_subject.RULES)


def legal(chip: ExpansionBuilder) -> Legal:
    """A builder of elementwise rows for `chip`."""
    return Legal(chip, RULES)
