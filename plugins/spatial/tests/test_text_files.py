"""Programs written as text: findings name the line of the file; artifacts that were saved become text again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tilefw
from tilefw.api import CheckError
from tilefw.cli.disasm import main as disasm

SOURCE = Path(__file__).parents[3] / "examples" / "sdm-1" / "increment.s"


def launched(text: str, tmp_path: Path) -> np.ndarray:
    path = tmp_path / "made.s"
    path.write_text(text)
    x = np.zeros(1280, np.float32)
    tilefw.load(str(path), "spatial-sdm1").only().launch((1,), [x])
    return x


def test_a_finding_names_the_line_of_the_file(tmp_path: Path) -> None:
    text = SOURCE.read_text()
    assert launched(text, tmp_path).tolist() == [1.0] * 1280
    with pytest.raises(CheckError) as caught:
        launched(text.replace("@12 WR", "@13 WR"), tmp_path)
    finding = caught.value.findings[0]
    assert (finding.code, str(finding.code_place)) == ("TFW0830", "MEM.W0:2")
    assert finding.source is not None
    assert finding.source.text == "  @13 WR b0:0, sW4, n=4"
    assert text.split("\n")[finding.source.line - 1] == "  @12 WR b0:0, sW4, n=4"
    assert finding.source.file.endswith("made.s")


def test_a_saved_artifact_is_told_as_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module = tilefw.load(str(SOURCE), "spatial-sdm1")
    path = tmp_path / "made.artifact"
    module.artifact.save(path)
    assert disasm("", [str(path)]) == 0
    shown = capsys.readouterr().out
    x = launched(shown, tmp_path)
    assert x.tolist() == [1.0] * 1280
    again = tilefw.load(shown.encode(), "spatial-sdm1")
    assert again.artifact.binary == module.artifact.binary
