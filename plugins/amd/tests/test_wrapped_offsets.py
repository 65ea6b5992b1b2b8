"""Offsets of 32 bits that wrap around are found at the access, on every chip; the code tells nothing of it, the artifact does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from served import CHIPS

import tilefw
from tilefw.api import Artifact
from tilefw.api.errors import CheckError
from tilefw.runtime.module import LoadedKernel
from tilefw.testing import wrapped_offsets as cases
from tilefw_amd.chips import Chip
from tilefw_amd.code_object import read
from tilefw_amd.isa.set import instruction_set
from tilefw_amd.simulate.decode import program

TARGETS = [chip.target for chip in CHIPS]
WRONG = {**cases.WRONG, **cases.WRONG_IN_ELEMENTS}
ARITHMETIC = ("v_add", "v_lshl", "v_mul", "v_mad", "v_cndmask", "s_add", "s_lshl", "s_mul")


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("target", TARGETS)
def test_an_offset_that_wraps_back_into_bounds_is_found(target: str, name: str) -> None:
    (finding,) = cases.findings(WRONG[name], target)
    assert (finding.check, finding.code) == ("bounds", "TFW0817")
    assert ("tl.store(out + r * stride" if name == "a store" else "tl.load(x +") in cases.written(finding)


@pytest.mark.parametrize("name", [*cases.RIGHT, *cases.RIGHT_IN_64_BITS])
@pytest.mark.parametrize("target", TARGETS)
def test_offsets_that_are_right_where_they_are_used_are_no_finding(target: str, name: str) -> None:
    case = {**cases.RIGHT, **cases.RIGHT_IN_64_BITS}[name]
    assert cases.codes(case, target) == set()
    assert cases.codes(case, target, "all") == set()


@pytest.mark.parametrize("target", TARGETS)
def test_without_the_check_of_bounds_nobody_looks(target: str) -> None:
    assert cases.codes(WRONG["a stride of 2**32 bytes"], target, "alignment") == set()


def compiled(target: str) -> Artifact:
    """Code for small buffers, whose offsets have strides of the launch."""
    arrays = np.zeros(cases.ROWS**2, np.float32), np.zeros(cases.ROWS**2, np.float32)
    return cases.matrix[(1,)](*arrays, cases.ROWS, 1, BLOCK=cases.ROWS, target=target).artifact


def found_by(kernel: LoadedKernel, row_stride: int) -> set[str]:
    """What is found when the code runs with a stride."""
    arrays = np.zeros(cases.ROWS**2, np.float32), np.zeros(cases.ROWS**2, np.float32)
    try:
        kernel.launch((1,), [*arrays, row_stride])  # the stride of 1 is a constant
    except CheckError as error:
        return {finding.code for finding in error.findings}
    return set()


@pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.name)
def test_promises_name_the_instructions_of_the_code_object(chip: Chip) -> None:
    artifact = compiled(chip.target)
    promised = artifact.metadata["offsets"]["matrix"]["exact"]
    assert artifact.binary is not None and len(promised) >= 4
    found = read(artifact.binary, "matrix", chip)
    instructions = program(instruction_set(chip), found, found.kernels[0]).instructions
    for number, opcode in promised:
        assert opcode.startswith(ARITHMETIC) and instructions[number].mnemonic.startswith(opcode), instructions[number].text


@pytest.mark.parametrize("target", TARGETS)
def test_a_saved_artifact_keeps_its_promises_and_bare_code_has_none(target: str, tmp_path: Path) -> None:
    artifact = compiled(target)
    artifact.save(tmp_path / "saved")
    assert artifact.binary is not None
    (tmp_path / "bare.hsaco").write_bytes(artifact.binary)
    (tmp_path / "bare.s").write_text(artifact.text)
    for name, codes in (("saved", {"TFW0817"}), ("bare.hsaco", set()), ("bare.s", set())):
        kernel = tilefw.load(tmp_path / name, target)["matrix"]
        assert (found_by(kernel, cases.ROWS), found_by(kernel, 1 << 30)) == (set(), codes), name


def test_promises_of_other_code_are_not_believed(tmp_path: Path) -> None:
    """As after an emitter that makes several instructions of one."""
    artifact = compiled(TARGETS[0])
    exact = [[number + 1, opcode] for number, opcode in artifact.metadata["offsets"]["matrix"]["exact"]]
    other = {**artifact.metadata, "offsets": {"matrix": {"exact": exact, "lost": [], "wide": []}}}
    replace(artifact, metadata=other).save(tmp_path / "other")
    assert found_by(tilefw.load(tmp_path / "other")["matrix"], 1 << 30) == set()
