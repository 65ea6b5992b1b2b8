"""`python -m tilefw_spatial.isa`: the page of the machine and its instruction set, to the standard output."""

from __future__ import annotations

import sys

from tilefw_spatial.page import page

sys.stdout.write(page())
