"""The debugger's tests share kernels in a file of their own, so that its lines are theirs; they leave Ctrl-C as it was."""

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def _ctrl_c_as_before() -> Iterator[None]:
    """pdb takes Ctrl-C for itself at `continue`, and keeps it."""
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)
