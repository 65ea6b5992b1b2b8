"""`python -m tilefw_amd.isa [CHIP]`: the page of an instruction set, to standard output; without a name, the first chip's."""

from __future__ import annotations

import sys

from tilefw_amd.chips import chips, named
from tilefw_amd.isa.page import page
from tilefw_amd.isa.set import instruction_set

chip = named(sys.argv[1]) if len(sys.argv) > 1 else next(iter(chips().values()))
sys.stdout.write(page(instruction_set(chip)))
