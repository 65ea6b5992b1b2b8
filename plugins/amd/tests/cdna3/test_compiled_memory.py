"""Kernels that LLVM makes of loads, stores, atomics and fences of every kind run right in the simulator, with all checks silent."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cdna3.llc import compiled, launch, listing, needs_llc, source

pytestmark = needs_llc
RNG = np.random.default_rng(23)

# IR type: bytes of one element in an array of them.
TYPES = {
    "i8": 1, "i16": 2, "i32": 4, "i64": 8, "half": 2, "double": 8, "<2 x i32>": 8, "<3 x i32>": 16, "<4 x i32>": 16, "i128": 16,
}  # fmt: skip
_BARRIER = """  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
"""
_INDEX = "  %i = zext i32 %tid to i64\n"


def at(name: str, kind: str, base: str, space: int, index: str = "i64 %i") -> str:
    return f"  %{name} = getelementptr {kind}, ptr addrspace({space}) {base}, {index}\n"


def run(body: str, arrays: list[np.ndarray], folder: Path, declarations: str = "", optimisation: str = "2", **options: Any) -> Any:
    binary = compiled(source(body, len(arrays), declarations), folder, optimisation)
    after, findings = launch(binary, arrays, **options)
    assert findings == (), findings
    return after


def holes(kind: str, size: int) -> np.ndarray:
    """Bytes of one element that its type does not have."""
    return np.arange(size) >= (12 if kind.startswith("<3") else size)


def through(kind: str, space: str, alignment: int) -> tuple[str, str]:
    """Body and declarations: element tid of %p0 goes through the space to element tid of %p1."""
    load = at("a", kind, "%p0", 1) + f"  %x = load volatile {kind}, ptr addrspace(1) %a, align {alignment}\n"
    store = at("b", kind, "%p1", 1) + f"  store volatile {kind} %y, ptr addrspace(1) %b, align {alignment}\n"
    if space == "global":
        return _INDEX + load.replace("%x", "%y") + store, ""
    if space == "flat":
        cast = "  %c = addrspacecast ptr addrspace(1) %p0 to ptr\n  store volatile ptr %c, ptr addrspace(5) %slot\n"
        back = "  %g = load volatile ptr, ptr addrspace(5) %slot\n  %a = getelementptr " + f"{kind}, ptr %g, i64 %i\n"
        loads = f"  %y = load volatile {kind}, ptr %a, align {alignment}\n"
        return "  %slot = alloca ptr, addrspace(5)\n" + _INDEX + cast + back + loads + store, ""
    if space == "shared":
        body = at("l", kind, "@lds", 3) + f"  store volatile {kind} %x, ptr addrspace(3) %l, align {alignment}\n"
        body += _BARRIER
        body += f"  %m = load volatile {kind}, ptr addrspace(3) %l, align {alignment}\n".replace("%m", "%y")
        return _INDEX + load + body + store, f"@lds = internal addrspace(3) global [64 x {kind}] poison, align 16"
    slot = "  %j = and i32 %tid, 3\n" + at("s", f"[4 x {kind}]", "%stack", 5, "i32 0, i32 %j")
    body = slot + f"  store volatile {kind} %x, ptr addrspace(5) %s, align {alignment}\n"
    body += f"  %y = load volatile {kind}, ptr addrspace(5) %s, align {alignment}\n"
    return f"  %stack = alloca [4 x {kind}], align 16, addrspace(5)\n" + _INDEX + load + body + store, ""


@pytest.mark.parametrize("space", ["global", "flat", "shared", "private"])
@pytest.mark.parametrize("kind", TYPES)
def test_every_width_goes_through_every_space(kind: str, space: str, tmp_path: Path) -> None:
    size = TYPES[kind]
    data = RNG.integers(0, 256, 64 * size, np.uint8)
    for alignment in {1, min(4, size), size}:
        body, declarations = through(kind, space, alignment)
        _, out = run(body, [data, np.zeros(64 * size, np.uint8)], tmp_path, declarations)
        kept = ~np.tile(holes(kind, size), 64)
        assert out[kept].tolist() == data[kept].tolist(), (kind, space, alignment)


def test_misaligned_elements_are_read_and_written(tmp_path: Path) -> None:
    """`align 1` at odd addresses of global memory and LDS, which LLVM compiles to single wide accesses."""
    body = """  %i = zext i32 %tid to i64
  %o = mul i64 %i, 17
  %a = getelementptr i8, ptr addrspace(1) %p0, i64 %o
  %x = load <4 x i32>, ptr addrspace(1) %a, align 1
  %j = mul i32 %tid, 17
  %l = getelementptr i8, ptr addrspace(3) @lds, i32 %j
  store <4 x i32> %x, ptr addrspace(3) %l, align 1
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  %y = load volatile <4 x i32>, ptr addrspace(3) %l, align 1
  %b = getelementptr i8, ptr addrspace(1) %p1, i64 %o
  store <4 x i32> %y, ptr addrspace(1) %b, align 1
"""
    declarations = "@lds = internal addrspace(3) global [1088 x i8] poison, align 16"
    text = listing(source(body, 2, declarations), tmp_path)
    assert re.search(r"global_load_dwordx4", text) and re.search(r"ds_write", text)
    data = RNG.integers(0, 256, 64 * 17, np.uint8)
    _, out = run(body, [data, np.zeros_like(data)], tmp_path, declarations)
    kept = np.arange(64 * 17) % 17 < 16
    assert out[kept].tolist() == data[kept].tolist() and not out[~kept].any()


# --- atomics -----------------------------------------------------------------------------------------------------------------

# atomicrmw's operation: start, what lane l gives, what is left.
INTEGERS: dict[str, tuple[int, str, Any]] = {
    "add": (7, "%v", lambda n, m: (7 + sum(range(n))) & m), "sub": (7, "%v", lambda n, m: (7 - sum(range(n))) & m),
    "umax": (7, "%v", lambda n, m: n - 1), "umin": (7, "%v", lambda n, m: 0), "max": (-5, "%v", lambda n, m: n - 1),
    "min": (-5, "%v", lambda n, m: -5 & m), "or": (0, "%v", lambda n, m: n - 1), "xor": (0, "%v", lambda n, m: 0),
    "and": (-1, "-2", lambda n, m: -2 & m), "nand": (0, "-1", lambda n, m: 0), "uinc_wrap": (0, "9", lambda n, m: n % 10),
    "udec_wrap": (0, "9", lambda n, m: -n % 10),
}  # fmt: skip


def _rmw(space: str, kind: str, operation: str, value: str, scope: str, fill: str = "0") -> tuple[str, str]:
    """Body and declarations: every lane changes one cell of the space; %p0 is the cell of memory, %p1 gets the old values."""
    scoped = f'syncscope("{scope}") ' if scope else ""
    width = {"i64": "i64", "double": "i64"}.get(kind, "i32")
    value_of = {"i32": "  %v = add i32 %tid, 0\n", "i64": "  %v = zext i32 %tid to i64\n"}.get(kind, "")
    pointer = {"global": "ptr addrspace(1) %p0", "flat": "ptr %flat", "shared": "ptr addrspace(3) @lds"}[space]
    before = "  %flat = addrspacecast ptr addrspace(1) %p0 to ptr\n" if space == "flat" else ""
    if space == "shared":
        before += f"  %first = load {kind}, ptr addrspace(1) %p0\n"
        before += "  %is = icmp eq i32 %tid, 0\n  br i1 %is, label %init, label %go\n"
        before += f"init:\n  store {kind} %first, ptr addrspace(3) @lds\n  br label %go\ngo:\n{_BARRIER}"
    tail = f"  %w = bitcast {kind} %old to {width}\n" if not kind.startswith("i") else f"  %w = add {kind} %old, 0\n"
    tail += at("b", width, "%p1", 1) + f"  store {width} %w, ptr addrspace(1) %b\n"
    if space == "shared":
        tail += f"{_BARRIER}  %last = load {kind}, ptr addrspace(3) @lds\n  store {kind} %last, ptr addrspace(1) %p2\n"
    change = f"  %old = atomicrmw {operation} {pointer}, {kind} {value} {scoped}monotonic, !amdgpu.no.fine.grained.memory !0\n"
    declarations = f"@lds = internal addrspace(3) global {kind} poison, align 8\n!0 = !{{}}"
    return _INDEX + value_of + before + change + tail, declarations


@pytest.mark.parametrize("space", ["global", "flat", "shared"])
@pytest.mark.parametrize("operation", INTEGERS)
@pytest.mark.parametrize("bits", [32, 64])
def test_integer_atomics(operation: str, bits: int, space: str, tmp_path: Path) -> None:
    start, value, left = INTEGERS[operation]
    word, mask = np.uint32 if bits == 32 else np.uint64, 2**bits - 1
    body, declarations = _rmw(space, f"i{bits}", operation, value, "agent")
    arrays = [np.array([start & mask], word), np.zeros(64, word), np.zeros(1, word)]
    # All lanes of the shared form store the same last value: a race that the sources do not have is not an error here.
    after = run(body, arrays, tmp_path, declarations)
    final = after[2] if space == "shared" else after[0]
    assert int(final[0]) == left(64, mask)
    if operation in ("add", "uinc_wrap"):
        assert (start & mask) in after[1].tolist()


@pytest.mark.parametrize("space", ["global", "flat", "shared"])
@pytest.mark.parametrize(("operation", "kind", "value", "start", "left"), [
    ("fadd", "float", "0.5", np.float32([1]), np.float32([33])), ("fadd", "double", "0.25", np.float64([1]), np.float64([17])),
    ("fmin", "double", "-2.0", np.float64([1]), np.float64([-2])), ("fmax", "double", "4.0", np.float64([1]), np.float64([4])),
    ("fmax", "float", "4.0", np.float32([1]), np.float32([4])), ("fmin", "float", "0.5", np.float32([1]), np.float32([0.5])),
    ("fadd", "<2 x half>", "<half 1.0, half 2.0>", np.float16([0, 1]), np.float16([64, 129])),
    ("fadd", "<2 x bfloat>", "<bfloat 1.0, bfloat 2.0>", np.uint16([0, 0x3F80]), np.uint16([0x4280, 0x4301])),
])  # fmt: skip
def test_float_atomics(operation: str, kind: str, value: str, start: Any, left: Any, space: str, tmp_path: Path) -> None:
    body, declarations = _rmw(space, kind, operation, value, "agent")
    word = np.uint64 if kind == "double" else np.uint32
    after = run(body, [start, np.zeros(64, word), np.zeros_like(start)], tmp_path, declarations)
    assert (after[2] if space == "shared" else after[0]).tolist() == left.tolist()


@pytest.mark.parametrize("scope", ["", "agent", "workgroup", "wavefront"])
@pytest.mark.parametrize("order", ["monotonic", "acq_rel", "seq_cst"])
def test_exchanges_pass_every_value_on_once(scope: str, order: str, tmp_path: Path) -> None:
    body, declarations = _rmw("global", "i32", "xchg", "%v", scope)
    arrays = [np.array([99], np.uint32), np.zeros(64, np.uint32), np.zeros(1)]
    after = run(body.replace("monotonic", order), arrays, tmp_path, declarations)
    assert sorted([*after[1].tolist(), int(after[0][0])]) == [*range(64), 99]


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("space", ["global", "shared", "flat"])
def test_compare_exchange_loops_count_every_lane(bits: int, space: str, tmp_path: Path) -> None:
    """A loop of loads and compare-exchanges: lanes leave it one after the other."""
    body, declarations = _rmw(space, f"i{bits}", "nand", "-1", "agent")
    for line in body.splitlines():
        if "atomicrmw" in line:
            pointer = line.split("nand ")[1].split(f", i{bits}")[0]
            loop = (
                f"  br label %head\nhead:\n  %guess = phi i{bits} [ 0, %{{from}} ], [ %seen, %head ]\n"
                f"  %more = add i{bits} %guess, 3\n"
                f'  %pair = cmpxchg {pointer}, i{bits} %guess, i{bits} %more syncscope("agent") monotonic monotonic\n'
                f"  %seen = extractvalue {{ i{bits}, i1 }} %pair, 0\n  %won = extractvalue {{ i{bits}, i1 }} %pair, 1\n"
                f"  br i1 %won, label %done, label %head\ndone:\n  %old = add i{bits} %seen, 0"
            )
            body = body.replace(line, loop.replace("%{from}", "%go" if space == "shared" else "%0"))
    word = np.uint32 if bits == 32 else np.uint64
    after = run(body, [np.array([5], word), np.zeros(64, word), np.zeros(1, word)], tmp_path, declarations)
    assert int((after[2] if space == "shared" else after[0])[0]) == 5 + 3 * 64
    assert sorted(after[1].tolist()) == [5 + 3 * i for i in range(64)]
