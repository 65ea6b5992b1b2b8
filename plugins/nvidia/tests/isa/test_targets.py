"""A module whose `.version` does not have its `.target` is refused, as ptxas refuses it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from chips_here import CHIPS, NEWEST

from isa.assembler import ptxas
from tilefw.api import CodeError
from tilefw_nvidia.chips import Architecture, first_version
from tilefw_nvidia.chips.versions import FIRST_VERSIONS
from tilefw_nvidia.load import artifact

TEXT = ".version {}\n.target {}\n.address_size 64\n.visible .entry k() {{ ret; }}\n"
VERSIONS = [
    *((4, n) for n in range(4)), (5, 0), *((6, n) for n in range(6)), *((7, n) for n in range(9)), *((8, n) for n in range(9)),
]
TARGETS = sorted({*(f"sm_{number}" for number in FIRST_VERSIONS), *(chip.name for chip in CHIPS)})


def accepted(version: tuple[int, int], target: str) -> bool:
    try:
        artifact(TEXT.format(".".join(map(str, version)), target), "k.ptx", NEWEST)
    except CodeError as error:
        assert error.code == "TFW0715" and f".target {target} needs .version" in str(error)
        return False
    return True


@pytest.mark.parametrize("target", TARGETS)
def test_a_target_is_known_from_its_first_version_on(target: str) -> None:
    first = first_version(Architecture.parse(target))
    assert [version for version in VERSIONS if accepted(version, target)] == [v for v in VERSIONS if v >= first]


@pytest.mark.skipif(ptxas() is None, reason="ptxas is not installed: pip install tilefw-nvidia[ptxas]")
@pytest.mark.parametrize("target", TARGETS)
def test_ptxas_agrees(target: str, tmp_path: Path) -> None:
    first = first_version(Architecture.parse(target))
    before = max((version for version in VERSIONS if version < first), default=None)
    for version in (first, before) if before else (first,):
        source = tmp_path / "k.ptx"
        source.write_text(TEXT.format(".".join(map(str, version)), target))
        command = [str(ptxas()), "-arch", NEWEST.name, "-c", str(source), "-o", str(tmp_path / "k.cubin")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert (done.returncode == 0) == (version == first), done.stderr


@pytest.mark.parametrize("version", ["4.4", "5.2", "6.6", "7.9", "8.9", "9.5", "10.0", "99.0", "0.9"])
def test_a_version_that_was_never_released_is_refused(version: str) -> None:
    """As ptxas says `Unsupported .version`."""
    with pytest.raises(CodeError) as error:
        artifact(TEXT.format(version, "sm_80"), "k.ptx", NEWEST)
    assert error.value.code == "TFW0715" and f".version {version}" in error.value.message
    assert error.value.place is not None and error.value.place.line == 1


def test_versions_later_than_the_chips_are_served() -> None:
    for version in ("8.8", "9.0", "9.4"):
        artifact(TEXT.format(version, "sm_80"), "k.ptx", NEWEST)
