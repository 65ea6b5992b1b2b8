"""Commands in child processes in which NumPy uses no instruction beyond its baseline, as on an old processor.

    python -m tilefw.testing.processors tilefw conformance --target reference
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from numpy._core import _multiarray_umath as numpy_core  # pyright: ignore[reportAttributeAccessIssue]  # no public list of these features

_SECONDS = 900


def features() -> list[str]:
    """The processor features that NumPy has special code for and uses here, by NumPy's names, which differ by version."""
    return [name for name in numpy_core.__cpu_dispatch__ if numpy_core.__cpu_features__.get(name)]


def environment() -> dict[str, str]:
    """This process's environment with all of `features()` switched off."""
    off = features() or os.environ.get("NPY_DISABLE_CPU_FEATURES", "").split()
    return {**os.environ, "NPY_DISABLE_CPU_FEATURES": " ".join(off)}


def run_without_features(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """`command`, with its output captured; raises subprocess.TimeoutExpired after 15 minutes."""
    return subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=_SECONDS, check=False)


def pytest_without_features(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """`pytest ARGUMENTS`, which stops at the first failure."""
    return run_without_features([sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *map(str, arguments)])


if __name__ == "__main__":
    sys.exit(subprocess.run(sys.argv[1:], env=environment(), check=False).returncode)
