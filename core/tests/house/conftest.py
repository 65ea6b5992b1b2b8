"""House rules are about the checkout; without one (tests run from elsewhere) there is nothing to hold."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
