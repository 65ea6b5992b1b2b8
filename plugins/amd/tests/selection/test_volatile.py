"""Volatile loads: each is made, in its order, past all caches, and is over before the next one."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from served import CHIPS, ISAS
from waiting.passes import Passes

import tilefw
import tilefw.language as tl
from tilefw.api.errors import InternalError
from tilefw.api.machine import parse_function
from tilefw_amd.isa.set import InstructionSet


@tilefw.jit
def look_thrice(flag_ptr, data_ptr, out_ptr, volatile: tl.constexpr, hint: tl.constexpr):
    """The flag, the data behind it, and once more the flag, which nobody wants to know."""
    flag = tl.load(flag_ptr, volatile=volatile, cache_modifier=hint)
    data = tl.load(data_ptr, volatile=volatile, cache_modifier=hint)
    tl.load(flag_ptr, volatile=volatile, cache_modifier=hint)
    tl.store(out_ptr, data * 2 + flag)


@pytest.mark.parametrize("target", [chip.target for chip in CHIPS])
@pytest.mark.parametrize(("volatile", "hint", "loads"), [(True, "", 3), (False, ".cv", 2)])
def test_each_is_made_and_over_before_the_next(volatile: bool, hint: str, loads: int, target: str) -> None:
    flag, data, out = (np.array([v], np.int32) for v in (5, 7, 0))
    result = look_thrice[(1,)](flag, data, out, volatile, hint, target=target, checks="all", num_warps=1)
    assert out[0] == 19
    lines = [line.split() for line in result.artifact.text.splitlines() if line.strip()]
    asked = [i for i, words in enumerate(lines) if words[0].startswith("global_load")]
    assert len(asked) == loads
    assert all({"sc0", "sc1"} <= set(lines[i]) for i in asked)
    for i, following in pairwise(asked):
        assert any(words[0] == "s_waitcnt" and "vmcnt(0)" in words for words in lines[i:following])


LOADS = """\
func @f target "{target}"
  file s: 128
  file v: 256
entry:
  $v[1:1] = global_load_dword $v[0:1], $s[0:2], "sc0", "sc1" {{buffer=0, volatile}}
  $v[2:1] = global_load_dword $v[0:1], $s[0:2], "sc0", "sc1" {{buffer=1, volatile}}
  s_endpgm
"""


@pytest.mark.parametrize("isa", ISAS, ids=str)
def test_the_checker_wants_each_to_be_over_before_the_next(isa: InstructionSet) -> None:
    function, passes = parse_function(LOADS.format(target=isa.chip.target)), Passes(isa)
    with pytest.raises(InternalError, match="has not finished"):
        passes.check_waits(function)
    assert passes.insert(function) == 1
    passes.check_waits(function)
