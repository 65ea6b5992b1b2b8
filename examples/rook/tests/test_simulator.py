"""The simulator needs the artifact alone, refuses what is not the R1's with its line, and masks lanes as the stack says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tilefw
from tilefw.api import Artifact
from tilefw_rook.simulate import Simulator
from tilefw_rook.target import R1

POINTER = '[{"name": "out", "kind": "pointer", "dtype": "int32", "offset": 0, "size": 4, "alignment": 4, "readonly": false}]'


def artifact(body: str, parameters: str = "[]") -> Artifact:
    facts = f'{{"workgroup": [16, 1, 1], "parameters": {parameters}}}'
    text = f'func @f target "rook-r1"\n  attributes {facts}\n  file x: 25\n  file f: 32\nentry:\n{body}  end\n'
    return Artifact(R1.name, "machine", text, (), metadata={"source_name": "f.rook"})


@pytest.mark.parametrize("body, message", [
    ("  $x[0:1] = frobnicate $x[1:1]\n", "no instruction 'frobnicate'"),
    ("  $x[0:1] = add $x[1:1]\n", "has 1 results and 2 operands"),
    ("  $x[0:1] = add $f[1:1], 1\n", "not an operand of the kind 'x'"),
    ("  $x[0:1] = add $x[1:1], 2048\n", "not an operand of the kind 'c'"),
    ("  $x[0:1] = lr.d $x[2:1]\n", "not an operand of the kind 'd'"),
    ("  @$x[0:1] $x[1:1] = mv $x[2:1]\n", "no predicates"),
    ("  bnez $x[0:1] {targets=away}\n", "a branch to away"),
])
def test_what_the_machine_does_not_have_is_refused_with_its_line(body: str, message: str) -> None:
    module = Simulator().load(artifact(body))
    with pytest.raises(tilefw.KernelError, match=message) as caught:
        module.decoders["f"]()
    assert str(caught.value.place).startswith("f.rook:6")


MASKS = """  $x[0:1] = lw.a 0
  $x[1:1] = thread
  $x[2:1] = sll $x[1:1], 2
  $x[0:1] = add $x[0:1], $x[2:1]
  $x[3:1] = li 0
  $x[4:1] = sltu $x[1:1], 8
  $x[5:1] = and $x[1:1], 1
  push $x[4:1]
  $x[3:1] = li 1
  push.n $x[5:1]
  $x[3:1] = li 2
  pop
  bnez $x[4:1] {targets=on}
then:
  $x[3:1] = li 9
on:
  pop
  sw $x[0:1], 0, $x[3:1]
"""


def test_lanes_sleep_between_a_push_and_its_pop_and_have_no_say_in_a_branch(tmp_path: Path) -> None:
    path = tmp_path / "f.rook"
    path.write_text(artifact(MASKS, POINTER).text, encoding="utf-8")
    out = np.full(16, -1, np.int32)
    tilefw.load(path, target="rook-r1")["f"].launch((1,), [out], checks="all")
    assert out.tolist() == [2, 1] * 4 + [0] * 8
