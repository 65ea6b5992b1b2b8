"""The chips that tests of this plugin run over, and one made up that has every row of the table."""

from __future__ import annotations

from dataclasses import replace

from tilefw.api import Artifact
from tilefw_nvidia.chips import chips

CHIPS = tuple(chips().values())
OLDEST, NEWEST = CHIPS[0], CHIPS[-1]
# Rows of chips that have no page here are tested on this one.
EVERYTHING = replace(NEWEST, name="sm_100a", target="nvidia-everything")


def body(artifact: Artifact) -> str:
    """The listing behind the lines that name the version and the chip: what one chip has run, another need not run again."""
    _, address_size, body = artifact.text.partition(".address_size")
    assert address_size
    return body
