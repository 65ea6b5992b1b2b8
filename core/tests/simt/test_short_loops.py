"""Short loops of known length become their iterations, with the same results; all others stay loops."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.scf import ForOp

from tilefw.api.dtypes import DTYPES
from tilefw.passes.manager import PassManager
from tilefw.simt.software_pipeline.short_loops import UnrollShortLoops
from tilefw.tile.nested_ops import nested_ops
from tilefw.tile.reference.interpret import run
from tilefw.tile.reference.memory import RefMemory
from tilefw.tile.text.module import parse

KERNEL = """
func.func @k(%x: !tile.ptr<i32>, %out: !tile.ptr<i32>, %n: i32) {{
  %lower = tile.constant {lower} : i32
  %end = tile.constant {end} : i32
  %step = tile.constant {step} : i32
  %lanes = tile.iota 0 to 32
  %zero = tile.constant 0 : tensor<32xi32>
  %one = tile.constant 1 : tensor<32xi32>
  %sum, %last = scf.for %i = %lower to {until} step %step
      iter_args(%s = %zero, %before = %one) -> (tensor<32xi32>, tensor<32xi32>) : i32 {{
    {body}
    %at = tile.splat %i : i32 to tensor<32xi32>
    %places = tile.addi %at, %lanes : tensor<32xi32>
    %loaded = tile.load %x[%places] : !tile.ptr<i32>[tensor<32xi32>]
    %product = tile.muli %loaded, %before : tensor<32xi32>
    %more = tile.addi %s, %product : tensor<32xi32>
    scf.yield %more, %loaded : tensor<32xi32>, tensor<32xi32>
  }}
  %both = tile.subi %sum, %last : tensor<32xi32>
  tile.store %out[%lanes], %both : !tile.ptr<i32>[tensor<32xi32>]
  func.return
}}
"""
LONG = "\n".join(f"%b{i} = tile.addi %s, %before : tensor<32xi32>" for i in range(32))
BRANCH = "%c = tile.gts %i, %n : i32\nscf.if %c {\n tile.store %out[%lanes], %s : !tile.ptr<i32>[tensor<32xi32>]\n}"


def _text(lower: int, end: int, step: int, until: str = "%end", body: str = "") -> str:
    return KERNEL.format(lower=lower, end=end, step=step, until=until, body=body)


def _unrolled(text: str) -> object:
    module = parse(text)
    PassManager([UnrollShortLoops()], verify_each=True).run(module)
    return module


def _loops(module: object) -> int:
    return sum(isinstance(op, ForOp) for op in nested_ops(module))  # type: ignore[arg-type]


def _result(module: object, n: int) -> np.ndarray:
    memory = RefMemory()
    x = memory.of_array(np.random.default_rng(0).integers(-9, 9, 128, np.int32), "x")
    out = memory.of_array(np.zeros(32, np.int32), "out")
    report = run(module, None, (1,), [x, out, n], memory=memory)  # type: ignore[arg-type]
    assert not report.findings
    return out.read_reference(DTYPES["int32"]).x


@pytest.mark.parametrize(("lower", "end", "step"), [(0, 3, 1), (5, 6, 4), (-8, 8, 4), (7, 7, 1), (9, 2, 3), (8, 28, 5)])
def test_a_short_loop_becomes_its_iterations(lower: int, end: int, step: int) -> None:
    text = _text(lower + 8, end + 8, step)
    module = _unrolled(text)
    assert _loops(module) == 0
    assert (_result(module, 0) == _result(parse(text), 0)).all()


@pytest.mark.parametrize("text", [
    _text(0, 5, 1), _text(0, 3, 1, until="%n"), _text(0, 3, 1, body=LONG), _text(0, 3, 1, body=BRANCH),
], ids=["many iterations", "as many as a launch says", "long", "with a branch"])
def test_other_loops_stay(text: str) -> None:
    module = _unrolled(text)
    assert _loops(module) == 1
    assert (_result(module, 3) == _result(parse(text), 3)).all()
