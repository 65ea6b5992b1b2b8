"""`python -m tilefw_amd.isa`: the page of the instruction set, to the standard output."""

from __future__ import annotations

import sys

from tilefw_amd.isa.page import page

sys.stdout.write(page())
