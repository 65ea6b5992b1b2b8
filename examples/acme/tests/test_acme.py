"""The Acme plugin as its own authors test it: through tilefw's public face."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
import tilefw_acme
from tilefw.api.machine import parse_function
from tilefw_acme.isa import ROWS
from tilefw_acme.simulate import decode

SIGNATURE = {"x_ptr": "*fp32", "out_ptr": "*fp32", "factor": "fp32", "n": "i32"}
SOURCES = sorted(Path(tilefw_acme.__file__).parent.glob("*.py"))


@tilefw.jit
def scale(x_ptr, out_ptr, factor, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=inside) * factor, mask=inside)


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_only_the_api_is_imported(source: Path) -> None:
    for node in ast.walk(ast.parse(source.read_text())):
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        for name in names:
            if name.partition(".")[0] == "tilefw":
                assert name == "tilefw.api" or name.startswith("tilefw.api."), f"{source.name} imports {name}"


def test_a_launch_is_right() -> None:
    x = np.arange(1000, dtype=np.float32)
    out = np.empty_like(x)
    scale[(4,)](x, out, 0.25, 1000, BLOCK=256, target="acme-m1")
    np.testing.assert_array_equal(out, x * np.float32(0.25))


def test_the_set_stays_small() -> None:
    assert len(ROWS) <= 56


def test_artifacts_are_physical_instructions_of_this_machine() -> None:
    artifact = tilefw.compile(scale, target="acme-m1", signature=SIGNATURE, constexprs={"BLOCK": 256})
    function = parse_function(artifact.text)
    registers = [piece for inst in function.blocks[0].insts for piece in (*inst.reads(), *inst.writes())]
    assert registers and all(piece.reg.physical for piece in registers)
    assert {inst.opcode for block in function.blocks for inst in block.insts} <= ROWS.keys()
    assert decode(function).required_workgroup == (64, 1, 1)


def test_the_simulator_runs_a_saved_artifact_without_the_compiler(tmp_path: Path) -> None:
    artifact = tilefw.compile(scale, target="acme-m1", signature=SIGNATURE, constexprs={"BLOCK": 256})
    (tmp_path / "scale.machine").write_text(artifact.text)
    code = f"""
import sys
for name in ("tilefw.tile", "tilefw.frontend", "tilefw.simt"):
    sys.modules[name] = None  # an import of any of them raises ImportError
from tilefw.api import Artifact, BufferView, Entry, LaunchOptions, Parameter, Scalar
from tilefw_acme.simulate import Simulator, functions
from tilefw_acme.target import M1
import numpy as np
text = open({str(tmp_path / 'scale.machine')!r}).read()
(function,) = functions(text, "scale.machine")
parameters = tuple(Parameter(**p) for p in function.attributes["parameters"])
entry = Entry(function.name, parameters, tuple(function.attributes["workgroup"]))
device = Simulator(M1)
x = np.arange(500, dtype=np.float32)
handles = [device.allocate(x.nbytes), device.allocate(x.nbytes)]
device.write(handles[0], x)
module = device.load(Artifact(M1.name, "machine", text, (entry,)))
args = [BufferView(handles[0]), BufferView(handles[1]), Scalar(0.5, "fp32"), Scalar(500, "int32")]
report = device.launch(module, entry.name, (2, 1, 1), args, LaunchOptions())
assert not report.findings, report.findings
assert (np.frombuffer(device.read(handles[1], x.nbytes), np.float32) == x / 2).all()
print("ran")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.strip() == "ran", done.stderr


def test_an_access_out_of_bounds_is_found() -> None:
    x, out = np.ones(100, np.float32), np.empty(100, np.float32)
    with pytest.raises(tilefw.KernelError, match="bounds"):
        scale[(1,)](x, out, 1.0, 128, BLOCK=128, target="acme-m1")


@pytest.mark.parametrize("text", ["", "func @f target \"acme\"\nentry:\n  nonsense %0\n"])
def test_malformed_text_is_refused(text: str) -> None:
    from tilefw_acme.simulate import functions

    with pytest.raises(tilefw.KernelError):
        for function in functions(text, "f.machine"):
            decode(function)
