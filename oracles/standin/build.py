"""A stand-in library, built with the system's C compiler."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

COMPILER = next((path for name in ("cc", "gcc", "clang") if (path := shutil.which(name))), None)


def built(source: Path, folder: Path, *defines: str) -> str:
    """The path of the library of `source` in `folder`; `defines` leave out what older libraries lack."""
    assert COMPILER is not None, "a test that builds the library is skipped without a compiler"
    path = folder / "-".join([source.stem, *defines, ".so"])
    if not path.exists():
        flags: Sequence[str] = [
            "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", f"-I{Path(__file__).parent}",
            *(f"-D{d}" for d in defines),
        ]
        subprocess.run([COMPILER, *flags, "-o", str(path), str(source)], check=True)
    return str(path)
