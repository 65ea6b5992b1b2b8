"""The simulator needs the artifact alone: no compiler, no IR; and it refuses text that is not the X1's, with the line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import tilefw
from tilefw.api import Artifact, LaunchOptions
from tilefw_acme.simulate import Simulator
from tilefw_acme.target import X1

RUN_BLOCKED = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        parts = name.split(".")
        if parts[0] == "xdsl" or parts[:1] == ["tilefw"] and parts[1:2] in (["tile"], ["frontend"], ["simt"]):
            raise ImportError(f"{name} is blocked")

sys.meta_path.insert(0, Blocked())
import numpy as np
import tilefw

x, out = np.arange(500, dtype=np.float32), np.empty(500, np.float32)
tilefw.load(sys.argv[1], target=sys.argv[2])["scaled"].launch((2,), [x, out, 0.5, 500], checks="all")
assert (out == x / 2).all()
print("ran")
"""

PARAMETERS = '{"workgroup": [16, 1, 1], "parameters": []}'


def text(body: str) -> str:
    return f'func @f target "acme-x1"\n  attributes {PARAMETERS}\n  file v: 2048\n  file p: 256\nentry:\n{body}  end\n'


@pytest.mark.parametrize("saved", ["artifact", "text"])
def test_a_saved_artifact_runs_without_the_compiler(saved: str, tmp_path: Path, compiled) -> None:
    artifact = compiled()
    path = tmp_path / f"scale.{saved}"
    if saved == "artifact":
        artifact.save(path)
    else:
        path.write_text(artifact.text, encoding="utf-8")
    command = [sys.executable, "-c", RUN_BLOCKED, str(path), "acme-x1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.strip() == "ran", done.stderr


def decode(body: str) -> None:
    device = Simulator(X1)
    module = device.load(Artifact(X1.name, "machine", text(body), (), metadata={"source_name": "f.x1"}))
    module.decoders["f"]()


@pytest.mark.parametrize("body, message", [
    ("  $v[0:1] = frobnicate $v[1:1]\n", "no instruction 'frobnicate'"),
    ("  $v[0:1] = add $v[1:1]\n", "has 1 results and 2 operands"),
    ("  $v[0:1] = add $p[1:1], 1\n", "not a register of the kind 'v'"),
    ("  $v[1:2] = pair 1, 2\n", "not a register of the kind 'd'"),
    ("  $v[0:1] = ld32 64, 0\n", "not an operand of the kind 'd'"),
    ("  jump {targets=away}\n", "a jump to away"),
])
def test_what_the_machine_does_not_have_is_refused_with_its_line(body: str, message: str) -> None:
    with pytest.raises(tilefw.KernelError, match=message) as caught:
        decode(body)
    assert str(caught.value.place).startswith("f.x1:6")


def test_what_the_machine_has_is_decoded() -> None:
    decode("  $v[0:2] = pair 1, 2\n  @!$p[3:1] $v[2:1] = sel $p[0:1], $v[0:1], -1\n")


@pytest.mark.parametrize("data", ["", "nonsense", 'func @f target "acme-x1"\nentry:\n  end\n', b"\xff\xfe"])
def test_malformed_files_are_refused(data: str | bytes, tmp_path: Path) -> None:
    path = tmp_path / "code.x1"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    with pytest.raises(tilefw.KernelError):
        tilefw.load(path, target="acme-x1")


def test_a_branch_on_which_lanes_disagree_is_a_fault() -> None:
    body = "  $v[0:1] = thread\n  $p[0:1] = cmp.lt.u $v[0:1], 8\n  @$p[0:1] jump {targets=out}\nthen:\n  $v[1:1] = mov.v 1\nout:\n"
    artifact = Artifact(X1.name, "machine", text(body), (), metadata={"source_name": "f.x1"})
    device = Simulator(X1)
    report = device.launch(device.load(artifact), "f", (1, 1, 1), [], LaunchOptions())
    assert [f.code for f in report.errors] == ["TFW0813"]
