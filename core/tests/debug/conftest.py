"""The debugger's tests share kernels in a file of their own, so that its lines are theirs."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
