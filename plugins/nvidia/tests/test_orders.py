"""The library's kernels are right and clean in any order of waves and workgroups, not only in the plain one."""

from __future__ import annotations

import pytest

from tilefw.cli.main import main
from tilefw.kernels.index import KERNELS
from tilefw_nvidia.chips import Chip


@pytest.mark.parametrize("seed", ["1", "6"])
@pytest.mark.parametrize("name", sorted(KERNELS))
def test_a_kernel_is_right_and_clean_in_another_order(name: str, seed: str, chip: Chip, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", name, "--target", chip.target, "--checks", "all", "--seed", seed]) == 0, capsys.readouterr()
