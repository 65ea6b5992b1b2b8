"""The stand-in library, built with the system's C compiler."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

SOURCE = Path(__file__).with_name("hip.c")
COMPILER = next((path for name in ("cc", "gcc", "clang") if (path := shutil.which(name))), None)


def built(folder: Path, *defines: str) -> str:
    """The path of the library in `folder`; `defines` leave out what older libraries lack."""
    assert COMPILER is not None, "a test that builds the library is skipped without a compiler"
    path = folder / "-".join(["libamdhip64", *defines, ".so"])
    if not path.exists():
        flags: Sequence[str] = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", *(f"-D{d}" for d in defines)]
        subprocess.run([COMPILER, *flags, "-o", str(path), str(SOURCE)], check=True)
    return str(path)
