"""Kernels that LLVM makes of fences between workgroups, buffer accesses, moves between lanes and loads to LDS."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from served import parse

from cdna3.llc import compiled, launch, listing, needs_llc, source
from tilefw_amd.isa.encoding.encode import encode

pytestmark = needs_llc
RNG = np.random.default_rng(29)
LANES = np.arange(64)


def run(body: str, arrays: list[np.ndarray], folder: Path, declarations: str = "", **options: Any) -> Any:
    after, findings = launch(compiled(source(body, len(arrays), declarations), folder), arrays, **options)
    assert findings == (), findings
    return after


# --- from one workgroup to another ---------------------------------------------------------------------------------------------

# Workgroup 0 writes %p0 and then says so in %p1; workgroup 1 waits for that, and copies %p0 to %p2.
PASSING = """  %i = zext i32 %tid to i64
  %g = call i32 @llvm.amdgcn.workgroup.id.x()
  %data = getelementptr i32, ptr addrspace(1) %p0, i64 %i
  %flag = getelementptr i32, ptr addrspace(1) %p1, i64 %i
  %first = icmp eq i32 %g, 0
  br i1 %first, label %write, label %wait
write:
  %value = add i32 %tid, 1000
  store i32 %value, ptr addrspace(1) %data
  store atomic i32 1, ptr addrspace(1) %flag syncscope("{scope}") {release}, align 4
  br label %end
wait:
  %seen = load atomic i32, ptr addrspace(1) %flag syncscope("{scope}") {acquire}, align 4
  %ready = icmp eq i32 %seen, 1
  br i1 %ready, label %read, label %wait
read:
  %got = load i32, ptr addrspace(1) %data
  %out = getelementptr i32, ptr addrspace(1) %p2, i64 %i
  store i32 %got, ptr addrspace(1) %out
  br label %end
end:
"""


def passed(folder: Path, scope: str, release: str, acquire: str) -> tuple[Any, Any]:
    text = source(PASSING.format(scope=scope, release=release, acquire=acquire), 3)
    return launch(compiled(text, folder), [np.zeros(64, np.uint32) for _ in range(3)], grid=2)


@pytest.mark.parametrize("scope", ["agent", ""])
def test_release_and_acquire_order_what_workgroups_say_to_each_other(scope: str, tmp_path: Path) -> None:
    after, findings = passed(tmp_path, scope, "release", "acquire")
    assert findings == () and after[2].tolist() == (LANES + 1000).tolist()


@pytest.mark.parametrize(("release", "acquire"), [("monotonic", "acquire"), ("release", "monotonic"), ("monotonic", "monotonic")])
def test_without_one_of_them_it_is_a_race(release: str, acquire: str, tmp_path: Path) -> None:
    _, findings = passed(tmp_path, "agent", release, acquire)
    assert {f.check for f in findings} == {"races"}


@pytest.mark.parametrize(
    ("right", "wrong"),
    [("buffer_wbl2 sc1", "buffer_wbl2 sc0"), ("buffer_inv sc1", "buffer_inv sc0"), ("buffer_inv sc1", "buffer_inv")],
)
def test_cache_control_of_too_narrow_a_scope_is_a_race(right: str, wrong: str, tmp_path: Path) -> None:
    binary = compiled(source(PASSING.format(scope="agent", release="release", acquire="acquire"), 3), tmp_path)
    changed = binary.replace(encode(parse(right)), encode(parse(wrong)))
    assert changed != binary
    _, findings = launch(changed, [np.zeros(64, np.uint32) for _ in range(3)], grid=2)
    assert {f.check for f in findings} == {"races"}


# --- buffers --------------------------------------------------------------------------------------------------------------------

_BUFFERS = """declare ptr addrspace(8) @llvm.amdgcn.make.buffer.rsrc.p8.p1(ptr addrspace(1), i16, i64, i32)
declare {kind} @llvm.amdgcn.raw.ptr.buffer.load.{name}(ptr addrspace(8), i32, i32, i32)
declare void @llvm.amdgcn.raw.ptr.buffer.store.{name}({kind}, ptr addrspace(8), i32, i32, i32)
declare i32 @llvm.amdgcn.raw.ptr.buffer.atomic.add.i32(i32, ptr addrspace(8), i32, i32, i32)
"""
_MADE = "call ptr addrspace(8) @llvm.amdgcn.make.buffer.rsrc.p8.p1"
_BUFFER_COPY = """  %from = {made}(ptr addrspace(1) %p0, i16 0, i64 {records}, i32 159744)
  %to = {made}(ptr addrspace(1) %p1, i16 0, i64 {records}, i32 159744)
  %o = mul i32 %tid, {bytes}
  %x = call {kind} @llvm.amdgcn.raw.ptr.buffer.load.{name}(ptr addrspace(8) %from, i32 %o, i32 {bytes}, i32 0)
  call void @llvm.amdgcn.raw.ptr.buffer.store.{name}({kind} %x, ptr addrspace(8) %to, i32 %o, i32 0, i32 0)
"""


KINDS = [("i8", "i8", 1), ("i16", "i16", 2), ("i32", "i32", 4), ("<2 x i32>", "v2i32", 8), ("<4 x i32>", "v4i32", 16)]


@pytest.mark.parametrize(("kind", "name", "size"), KINDS)
def test_buffer_copies_stop_at_the_records(kind: str, name: str, size: int, tmp_path: Path) -> None:
    """Lane l copies element l + 1 to l; both buffers end behind 40 elements."""
    records = 40 * size
    values = {"kind": kind, "name": name, "bytes": size, "records": records, "made": _MADE}
    data = RNG.integers(1, 256, records, np.uint8)
    after = run(_BUFFER_COPY.format(**values), [data, np.full(records, 7, np.uint8)], tmp_path, _BUFFERS.format(**values))
    assert after[1].tolist() == [*data[size:].tolist(), *[0] * size]


def test_buffer_atomics_count_lanes_in_range(tmp_path: Path) -> None:
    body = f"  %b = {_MADE}(ptr addrspace(1) %p0, i16 0, i64 64, i32 159744)\n" + """
  %o = mul i32 %tid, 4
  %x = call i32 @llvm.amdgcn.raw.ptr.buffer.atomic.add.i32(i32 %tid, ptr addrspace(8) %b, i32 %o, i32 0, i32 0)
  %i = zext i32 %tid to i64
  %a = getelementptr i32, ptr addrspace(1) %p1, i64 %i
  store i32 %x, ptr addrspace(1) %a
"""
    cells = np.arange(100, 116, dtype=np.uint32)
    after = run(body, [cells, np.zeros(64, np.uint32)], tmp_path, _BUFFERS.format(kind="i32", name="i32"))
    assert after[0].tolist() == (cells + np.arange(16)).tolist()
    assert after[1].tolist() == [*cells.tolist(), *[0] * 48]


# --- between lanes ----------------------------------------------------------------------------------------------------------------

_LANES = """declare i32 @llvm.amdgcn.ds.bpermute(i32, i32)
declare i32 @llvm.amdgcn.ds.permute(i32, i32)
declare i32 @llvm.amdgcn.ds.swizzle(i32, i32)
declare i32 @llvm.amdgcn.ds.append.p3(ptr addrspace(3), i1)
"""


def _moved(call: str, tmp_path: Path) -> np.ndarray:
    body = f"""  %i = zext i32 %tid to i64
  %a = getelementptr i32, ptr addrspace(1) %p0, i64 %i
  %v = load i32, ptr addrspace(1) %a
  %to = mul i32 %tid, 12
  %x = call i32 {call}
  %b = getelementptr i32, ptr addrspace(1) %p1, i64 %i
  store i32 %x, ptr addrspace(1) %b
"""
    return run(body, [(LANES * LANES + 3).astype(np.uint32), np.zeros(64, np.uint32)], tmp_path, _LANES)[1]


@pytest.mark.parametrize(
    ("call", "source_lane"),
    [
        ("@llvm.amdgcn.ds.bpermute(i32 %to, i32 %v)", LANES * 3 % 64),
        ("@llvm.amdgcn.ds.permute(i32 %to, i32 %v)", np.argsort(LANES * 3 % 64)),
        ("@llvm.amdgcn.ds.swizzle(i32 %v, i32 1055)", LANES ^ 1),
        ("@llvm.amdgcn.ds.swizzle(i32 %v, i32 32795)", LANES ^ 3),
    ],
)
def test_moves_between_lanes(call: str, source_lane: np.ndarray, tmp_path: Path) -> None:
    assert _moved(call, tmp_path).tolist() == (source_lane * source_lane + 3).tolist()


# --- to LDS -----------------------------------------------------------------------------------------------------------------------

_TO_LDS = """  %i = zext i32 %tid to i64
  %a = getelementptr i32, ptr addrspace(1) %p0, i64 %i
  call void @llvm.amdgcn.global.load.lds(ptr addrspace(1) %a, ptr addrspace(3) @lds, i32 4, i32 0, i32 0)
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  %j = xor i32 %tid, 1
  %l = getelementptr i32, ptr addrspace(3) @lds, i32 %j
  %x = load i32, ptr addrspace(3) %l
  %b = getelementptr i32, ptr addrspace(1) %p1, i64 %i
  store i32 %x, ptr addrspace(1) %b
"""
_TO_LDS_DECLARATIONS = """@lds = internal addrspace(3) global [64 x i32] poison, align 16
declare void @llvm.amdgcn.global.load.lds(ptr addrspace(1), ptr addrspace(3), i32, i32, i32)
"""


def test_loads_to_lds_are_there_behind_the_wait(tmp_path: Path) -> None:
    text = listing(source(_TO_LDS, 2, _TO_LDS_DECLARATIONS), tmp_path)
    assert re.search("global_load_lds_dword", text)
    data = RNG.integers(0, 1 << 32, 64, np.uint64).astype(np.uint32)
    after = run(_TO_LDS, [data, np.zeros(64, np.uint32)], tmp_path, _TO_LDS_DECLARATIONS)
    assert after[1].tolist() == data[LANES ^ 1].tolist()
