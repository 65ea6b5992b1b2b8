"""Tests of the simulators find the hand-made programs beside them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
