"""Core needs no vendor: through the null backend a kernel becomes an artifact of plain tile IR, and nothing runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tilefw.testing import distribution

SCRIPT = """
import sys

class NoPlugins:
    def find_spec(self, name, path=None, target=None):
        if name.startswith(("tilefw_", "tilefw.simt", "tilefw.machine", "tilefw.sim.", "tilefw.tile.reference.interpret")):
            raise ImportError(f"{name} was asked for")

sys.meta_path.insert(0, NoPlugins())
import tilefw
from tilefw.kernels import vector_add

signature = {"x_ptr": "*fp32", "y_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32"}
artifact = tilefw.compile(vector_add.vector_add, target="null-text", signature=signature, constexprs={"BLOCK": 64})
entry = artifact.entries[0]
print(artifact.target, artifact.format, *(f"{p.name}:{p.dtype}:{p.readonly}" for p in entry.parameters))
print(artifact.text)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A folder for the import path with a distribution that names the null backend."""
    distribution.write(tmp_path, "null", "tilefw.testing.null_backend")
    return tmp_path


def test_a_kernel_is_compiled_without_plugin_kit_or_simulator(path: Path) -> None:
    script = path / "compile_it.py"
    script.write_text(SCRIPT)
    environment = {"PYTHONPATH": str(path), "TILEFW_CACHE_DIR": str(path / "cache"), "HOME": str(path)}
    done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    first, text = done.stdout.split("\n", 1)
    assert first == "null-text tile x_ptr:fp32:True y_ptr:fp32:True out_ptr:fp32:False n:int32:False"

    from tilefw.api.ir import StoreBlockOp, parse, verify

    module = parse(text)
    verify(module)
    assert sum(isinstance(op, StoreBlockOp) for op in module.walk()) == 1
