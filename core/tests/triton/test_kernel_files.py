"""A kernel in a file that imports Triton is compiled, profiled and tuned as one that imports tilefw."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from tilefw.cli.main import main
from tilefw.triton import importing
from tilefw.triton.importing import in_tritons_place

KERNEL = '''
import sys
import triton
from triton import language as tl
from triton.language.extra import libdevice

sys.path.insert(0, "elsewhere")

@triton.jit
def grown(x_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + at, libdevice.exp(tl.load(x_ptr + at, mask=at < n)), mask=at < n)
'''


@pytest.fixture
def kernel(tmp_path: Path) -> str:
    (tmp_path / "kernel.py").write_text(KERNEL)
    return f"{tmp_path / 'kernel.py'}:grown"


def test_a_kernel_of_tritons_is_compiled_from_its_file(kernel: str, capsys: pytest.CaptureFixture[str]) -> None:
    stated, path = ["--signature", "x_ptr=*fp32", "n=i32", "--constexpr", "BLOCK=64"], [*sys.path]
    assert main(["compile", kernel, "--target", "reference", "--emit", "tile", *stated]) == 0
    assert "tile.exp" in capsys.readouterr().out
    assert sys.path == path, "what the file puts there is the file's own"


def test_what_stood_in_tritons_place_stands_there_again(free_place: None) -> None:
    theirs = sys.modules["triton"] = ModuleType("triton")
    with in_tritons_place():
        import triton

        assert triton is not theirs and triton.cdiv(5, 2) == 3
    assert sys.modules.pop("triton") is theirs and "triton.language" not in sys.modules
    assert not importing.installed()


def test_what_is_installed_stays_as_it_is(installed: None) -> None:
    ours = sys.modules["triton"]
    with in_tritons_place():
        assert sys.modules["triton"] is ours
    assert importing.installed() and sys.modules["triton"] is ours


def test_a_file_may_install_and_uninstall_by_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    leaves = "import tilefw.triton\ntilefw.triton.install()\n" + KERNEL + "\ntilefw.triton.uninstall()\n"
    (tmp_path / "leaves.py").write_text(leaves)
    stated = ["--signature", "x_ptr=*fp32", "n=i32", "--constexpr", "BLOCK=64"]
    assert main(["compile", f"{tmp_path / 'leaves.py'}:grown", "--target", "reference", "--emit", "tile", *stated]) == 0
    assert not importing.installed()
