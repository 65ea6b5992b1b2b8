"""Accesses of all ranks' copies at once: the same results where the chip has multicast addresses and where core makes a loop."""

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
import tilefw.language.distributed as tld

TARGETS = ["reference", "nvidia-sm80", "nvidia-sm90a", "amd-cdna3"]
RANKS = 3
OPS = {"add": np.add, "max": np.maximum, "min": np.minimum, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}


@tilefw.jit
def load_all(x, out, n, op: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tld.barrier()
    tl.store(out + at, tld.multicast_load_reduce(x + at, op, mask=at < n, other=7))


@tilefw.jit
def store_all(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    if tld.rank() == 1:
        tld.multicast_store(out + at, tl.load(x + at), mask=at < n)
    tld.barrier()


@tilefw.jit
def update_all(x, out, n, op: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tld.multicast_reduce(out + at, tl.load(x + at), op, mask=at < n)
    tld.barrier()


@tilefw.jit
def signal_all(x, seen, flag):
    tl.store(x, 5 + tld.rank())
    tld.multicast_reduce(flag, 1, sem="release")
    tld.wait(flag, value=tld.num_ranks())
    tl.store(seen, tld.multicast_load_reduce(x))


def drawn(node, dtype, n=64):
    rng = np.random.default_rng(1)
    kind = np.dtype(dtype)
    parts = [rng.integers(0, 100, n) if kind.kind in "iu" else rng.standard_normal(n) for _ in node.ranks]
    return node.array([part.astype(kind) for part in parts])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("op", "dtype"), [
    ("add", "float32"), ("max", "int32"), ("min", "uint64"), ("xor", "int32"), ("add", "float16"), ("max", "float32"),
    ("add", "int64"),
])
def test_a_load_combines_what_all_ranks_hold(target, op, dtype):
    node = tilefw.node(target, RANKS)
    x, out = drawn(node, dtype), node.zeros((64,), dtype)
    node.launch(load_all, (1,), x, out, 50, op=op, BLOCK=64)
    wide = [part.astype(np.float64) if dtype.startswith("float") else part for part in x]
    due = OPS[op](OPS[op](wide[0], wide[1]), wide[2])
    for part in out:
        np.testing.assert_allclose(part[:50].astype(due.dtype), due[:50], rtol=2e-3 if dtype == "float16" else 1e-6, atol=1e-6)
        assert (part[50:] == 7).all()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["float32", "int64", "float16"])
def test_a_store_writes_every_copy(target, dtype):
    node = tilefw.node(target, RANKS)
    x, out = drawn(node, dtype), node.zeros((64,), dtype)
    node.launch(store_all, (1,), x, out, 50, BLOCK=64)
    assert all((part[:50] == x[1][:50]).all() and not part[50:].any() for part in out)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("op", "dtype"), [
    ("add", "int32"), ("max", "int64"), ("or", "int32"), ("add", "float32"), ("add", "float16"),
])
def test_an_update_reaches_every_copy(target, op, dtype):
    node = tilefw.node(target, RANKS)
    x, out = drawn(node, dtype), node.zeros((64,), dtype)
    node.launch(update_all, (1,), x, out, 50, op=op, BLOCK=64, seed=3)
    due = OPS[op](OPS[op](x[0], x[1]), x[2])
    error = {"rtol": 2e-3, "atol": 2e-3} if dtype == "float16" else {}
    assert all(np.allclose(part[:50], due[:50], **error) and not part[50:].any() for part in out)


@pytest.mark.parametrize("target", TARGETS)
def test_an_update_that_releases_signals_all_ranks(target):
    node = tilefw.node(target, RANKS)
    x, seen, flag = node.zeros((1,), "int32"), node.zeros((1,), "int32"), node.zeros((1,), "int32")
    for seed in range(3):
        node.launch(signal_all, (1,), x, seen, flag, seed=seed)
        assert all(part[0] == 18 for part in seen)
        for part in flag:
            part[0] = 0


@tilefw.jit
def load_plainly(out, address):
    tl.store(out, tl.load(address.to(tl.pointer_type(tl.float32))) + tld.rank())


@pytest.mark.parametrize("target", ["reference", "nvidia-sm80", "nvidia-sm90a"])
def test_a_plain_access_of_a_multicast_address_is_told_with_what_is_there(target):
    node = tilefw.node(target, 2)
    out = node.zeros((4,), name="out")
    with pytest.raises(tilefw.CheckError, match="to the multicast address of element 2 of out on every rank") as caught:
        node.launch(load_plainly, (1,), out, node.heap.multicast.start + out.offset + 8)
    assert caught.value.code == "TFW0879"


@pytest.mark.parametrize("target", ["reference", "nvidia-sm90a"])
def test_a_multicast_access_of_what_is_in_no_heap_is_told(target):
    node = tilefw.node(target, 2)
    with pytest.raises(tilefw.CheckError, match="no multicast address"):
        node.launch(load_all, (1,), np.zeros(64, np.float32), node.zeros((64,)), 64, op="add", BLOCK=64)


def test_ranks_that_do_not_reach_all_others_have_no_multicast_addresses():
    node = tilefw.node("nvidia-sm90a", 2, domain_size=1)
    with pytest.raises(tilefw.CheckError, match="does not reach element 0 of x on every rank"):
        node.launch(load_without_meeting, (1,), node.zeros((64,)), node.zeros((64,)), BLOCK=64)


@pytest.mark.parametrize("target", ["reference", "nvidia-sm90a"])
def test_a_load_that_nothing_orders_behind_what_is_written_is_a_race(target):
    node = tilefw.node(target, 2)
    with pytest.raises(tilefw.CheckError, match="race"):
        node.launch(write_and_load_without_meeting, (1,), node.zeros((64,)), node.zeros((64,)), BLOCK=64, checks="races")


@tilefw.jit
def load_without_meeting(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tld.multicast_load_reduce(x + at))


@tilefw.jit
def write_and_load_without_meeting(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(x + at, 1.0)
    tl.store(out + at, tld.multicast_load_reduce(x + at))


def test_what_the_chip_claims_is_what_its_instructions_make():
    module = tilefw.compile(load_all, "nvidia-sm90a", {"x": "*fp32", "out": "*fp32", "n": "i32"}, {"op": "add", "BLOCK": 64})
    assert "multimem.ld_reduce.relaxed.sys.global.add.f32" in module.text
    for target in ("nvidia-sm80", "amd-cdna3"):
        other = tilefw.compile(load_all, target, {"x": "*fp32", "out": "*fp32", "n": "i32"}, {"op": "add", "BLOCK": 64})
        assert "multimem" not in other.text


@tilefw.jit
def load_for_nobody(x, BLOCK: tl.constexpr):
    tld.multicast_load_reduce(x + tl.arange(0, BLOCK))


def test_what_nobody_asks_for_is_not_loaded():
    module = tilefw.compile(load_for_nobody, "nvidia-sm90a", {"x": "*fp32"}, {"BLOCK": 64})
    assert "multimem" not in module.text


@pytest.mark.parametrize(("line", "code"), [
    ("tld.multicast_load_reduce(x, 'mul')", "TFW0221"), ("tld.multicast_load_reduce(x, 'and')", "TFW0220"),
    ("tld.multicast_reduce(x, 1, sem='acquire')", "TFW0221"), ("tld.multicast_load_reduce(x, other=1)", "TFW0221"),
])
def test_what_there_is_not_is_refused(line, code, tmp_path, monkeypatch):
    file = tmp_path / "refused.py"
    file.write_text(
        "import tilefw\nimport tilefw.language as tl\nimport tilefw.language.distributed as tld\n\n\n"
        f"@tilefw.jit\ndef kernel(x):\n    {line}\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(__import__("sys").modules, "refused", raising=False)
    kernel = __import__("refused").kernel
    with pytest.raises(tilefw.CompileError) as caught:
        tilefw.compile(kernel, "reference", {"x": "*fp32"})
    assert caught.value.code == code
