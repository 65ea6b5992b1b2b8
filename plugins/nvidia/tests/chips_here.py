"""The chips that tests of this plugin run over, and one made up that has every row of the table."""

from __future__ import annotations

from dataclasses import replace

from tilefw_nvidia.chips import chips

CHIPS = tuple(chips().values())
OLDEST, NEWEST = CHIPS[0], CHIPS[-1]
# Rows of chips that have no page here are tested on this one.
EVERYTHING = replace(NEWEST, name="sm_100", target="nvidia-everything")
