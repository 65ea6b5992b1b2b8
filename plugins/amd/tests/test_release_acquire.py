"""The waits of a release and of an acquire: no register shows them, and to leave one out is told of all the same."""

from __future__ import annotations

import pytest
from assembled import PROLOGUE, run

# Store data, publish it by an atomic; then take what somebody else published by one. As LLVM writes `atomicrmw acq_rel`.
_EXCHANGE = PROLOGUE + """
  v_mov_b32 v1, 7
  v_mov_b32 v2, 0
  global_store_dword v40, v1, s[40:41] offset:64
  buffer_wbl2 sc1
  {released}
  {access}
  {acquired}
  buffer_inv sc1
  s_endpgm
"""
_ATOMIC = "global_atomic_add v2, v1, s[40:41]"
_MISSING = "a wait that leaves no event in the queue vmcnt must be between them"
_EVERYTHING = {"released": "s_waitcnt vmcnt(0)", "access": _ATOMIC, "acquired": "s_waitcnt vmcnt(0)"}


def _found(**parts: str) -> list[tuple[str, str, str]]:
    findings = run(_EXCHANGE.format(**{**_EVERYTHING, **parts}), words=128).findings
    return [(f.code, f.instruction.split()[0], str(f.note)) for f in findings]


@pytest.mark.parametrize("access", [_ATOMIC, "global_store_dword v40, v1, s[40:41] sc1", "global_load_dword v3, v40, s[40:41] sc1"])
def test_the_whole_sequence_is_clean(access: str) -> None:
    assert _found(access=access) == []


@pytest.mark.parametrize(("access", "told"), [
    (_ATOMIC, True),
    ("global_atomic_add v3, v2, v1, s[40:41] sc0", True),
    ("global_store_dword v40, v1, s[40:41] sc1", True),
    ("global_store_dword v40, v1, s[40:41] sc0 sc1", True),
    ("global_store_dword v40, v1, s[40:41]", False),
])
def test_what_publishes_needs_the_write_back_done(access: str, told: bool) -> None:
    found = _found(released="s_waitcnt vmcnt(1)", access=access)
    assert found == ([("TFW0820", access.split()[0], _MISSING)] if told else [])


@pytest.mark.parametrize(("access", "told"), [
    (_ATOMIC, True),
    ("global_load_dword v3, v40, s[40:41] sc1", True),
    ("global_load_dword v3, v40, s[40:41] sc0 sc1", True),
    ("global_load_dword v3, v40, s[40:41]", False),
])
def test_an_invalidation_needs_the_access_that_acquires_done(access: str, told: bool) -> None:
    found = _found(acquired="s_waitcnt vmcnt(1)", access=access)
    assert found == ([("TFW0820", "buffer_inv", _MISSING)] if told else [])


@pytest.mark.parametrize("before", ["", "global_load_dword v3, v40, s[40:41]"])
def test_a_write_back_behind_finished_stores_needs_no_wait(before: str) -> None:
    """LLVM writes none there: nothing of this wave is on its way."""
    body = _EXCHANGE.format(**{**_EVERYTHING, "released": ""})
    assert run(body.replace("buffer_wbl2 sc1", f"s_waitcnt vmcnt(0)\n  {before}\n  buffer_wbl2 sc1"), words=128).findings == ()


def test_without_a_scope_nothing_is_acquired() -> None:
    body = _EXCHANGE.format(**{**_EVERYTHING, "acquired": ""}).replace("buffer_inv sc1", "buffer_inv")
    assert run(body, words=128).findings == ()
