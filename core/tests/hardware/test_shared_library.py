"""A library without the function that an entry is called by is an error of the code, as one that cannot be loaded."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tilefw.api import CodeError
from tilefw.api.hardware import SharedLibrary


def test_a_library_without_the_function_of_an_entry_is_refused(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    source, made = tmp_path / "k.c", tmp_path / "k.so"
    source.write_text("int toy_k(void) { return 3; }\n")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", made, source], check=True)
    library = SharedLibrary(made.read_bytes(), "toy_")
    assert library.address("k")
    with pytest.raises(CodeError, match="no function 'toy_other'") as told:
        library.address("other")
    assert told.value.code == "TFW0702"
    with pytest.raises(CodeError, match="cannot be loaded"):
        SharedLibrary(b"none")
