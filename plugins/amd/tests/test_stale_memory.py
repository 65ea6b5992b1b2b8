"""Memory that returns stale values: a release and an acquire as LLVM writes them show none, without their cache actions they do."""

from __future__ import annotations

import numpy as np
import pytest
from assembled import BACKEND, PROLOGUE, artifact

from tilefw.api import BufferView, LaunchOptions

# Workgroup 0 stores data and a flag, workgroup 1 waits for the flag and keeps what it then reads of the data.
PASSING = PROLOGUE + """
  v_mov_b32 v1, 7
  v_mov_b32 v2, 0
  v_mov_b32 v3, 1
  s_cmp_eq_u32 s2, 0
  s_cbranch_scc0 .Lread
  global_store_dword v2, v1, s[40:41]
  {write_back}
  s_waitcnt vmcnt(0)
  global_store_dword v2, v3, s[40:41] offset:128 {flag}
  s_endpgm
.Lread:
  global_load_dword v4, v2, s[40:41]
  s_waitcnt vmcnt(0)
.Lwait:
  global_load_dword v3, v2, s[40:41] offset:128 {flag}
  s_waitcnt vmcnt(0)
  {invalidate}
  v_cmp_eq_u32 vcc, 0, v3
  s_cbranch_vccnz .Lwait
  global_load_dword v5, v2, s[40:41]
  s_waitcnt vmcnt(0)
  global_store_dword v2, v5, s[40:41] offset:192
  s_endpgm
"""
DEVICE = {"write_back": "buffer_wbl2 sc1", "invalidate": "buffer_inv sc1", "flag": "sc1"}
SYSTEM = {"write_back": "buffer_wbl2 sc0 sc1", "invalidate": "buffer_inv sc0 sc1", "flag": "sc0 sc1"}


def read_by_the_second(words: dict[str, str]) -> set[int]:
    """What it read under some seeds."""
    code, values = artifact(PASSING.format(**words)), set()
    for seed in range(1, 40):
        device = BACKEND.simulator()
        buffer = device.allocate(256, label="buffer")
        device.write(buffer, bytes(256))
        options = LaunchOptions(block=(64, 1, 1), checks=frozenset({"weak_memory"}), seed=seed)
        assert not device.launch(device.load(code), "kernel", (2,), [BufferView(buffer)], options).findings
        values.add(int(np.frombuffer(device.read(buffer, 256), np.uint32)[48]))
    return values


@pytest.mark.parametrize("words", [DEVICE, SYSTEM], ids=["device", "system"])
def test_a_release_and_an_acquire_show_no_stale_data(words):
    assert read_by_the_second(words) == {7}


@pytest.mark.parametrize("weaker", [
    {"write_back": ""}, {"invalidate": ""}, {"write_back": "buffer_wbl2 sc0"}, {"invalidate": "buffer_inv sc0"}, {"flag": "sc0"},
], ids=str)
def test_each_cache_action_left_out_or_too_narrow_shows_them(weaker):
    assert read_by_the_second({**DEVICE, **weaker}) == {0, 7}


def test_a_store_that_is_not_aligned_changes_both_words_that_it_touches():
    """gfx942 takes global accesses at any address; a wave reads what it stored itself."""
    code = artifact(PROLOGUE + """
  v_mov_b32 v2, 0
  v_mov_b32 v1, 0x11111111
  global_store_dword v2, v1, s[40:41] offset:4
  v_mov_b32 v1, 0x22222222
  global_store_dword v2, v1, s[40:41] offset:2
  s_waitcnt vmcnt(0)
  global_load_dword v3, v2, s[40:41] offset:4
  s_waitcnt vmcnt(0)
  global_store_dword v2, v3, s[40:41] offset:64
  s_endpgm
""")
    device = BACKEND.simulator()
    buffer = device.allocate(256, label="buffer")
    device.write(buffer, bytes(256))
    options = LaunchOptions(block=(64, 1, 1), checks=frozenset({"weak_memory"}), seed=1)
    device.launch(device.load(code), "kernel", (1,), [BufferView(buffer)], options)
    assert np.frombuffer(device.read(buffer, 256), np.uint32)[16] == 0x11112222
