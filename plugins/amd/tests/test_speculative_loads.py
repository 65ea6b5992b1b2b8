"""The first load of a compare-and-swap loop races with no atomic operation; any other plain load of the place does."""

from __future__ import annotations

import assembled
import numpy as np
from assembled import PROLOGUE

# Every lane of every wave doubles and adds one at one place: what no single instruction does.
_LOOP = PROLOGUE + """
  v_mov_b32 v0, 0
  {load}
  s_waitcnt vmcnt(0)
  s_mov_b64 s[6:7], 0
again:
  v_mov_b32 v3, {compared}
  v_lshl_add_u32 v2, v3, 1, 1
  global_atomic_cmpswap v1, v0, v[2:3], s[40:41] sc0
  s_waitcnt vmcnt(0)
  v_cmp_eq_u32 vcc, v1, v3
  s_or_b64 s[6:7], vcc, s[6:7]
  v_mov_b32 v4, v1
  v_mov_b32 v3, v1
  s_andn2_b64 exec, exec, s[6:7]
  s_cbranch_execnz again
  s_endpgm
"""


def _run(load: str, compared: str) -> assembled.Outcome:
    return assembled.run(_LOOP.format(load=load, compared=compared), grid=(3,), block=(8, 1, 1), words=1)


def test_a_load_that_a_compare_and_swap_verifies_is_no_race() -> None:
    outcome = _run("global_load_dword v3, v0, s[40:41]", "v3")
    assert outcome.findings == ()
    assert outcome.words[0] == np.uint32(2**24 - 1)


def test_what_it_compares_with_must_come_from_there() -> None:
    assert [finding.check for finding in _run("global_load_dword v4, v0, s[40:41]", "v4").findings] == ["races"]
