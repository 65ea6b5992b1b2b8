"""Atomics in the language: types, methods, orders and scopes, what is refused and in which words, and that order does not tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
from tilefw.api.device import DEFAULT_BUDGET
from tilefw.api.errors import CompileError
from tilefw.frontend import build_module
from tilefw.kernels import formats
from tilefw.kernels.instance import instance
from tilefw.kernels.reference import Reference
from tilefw.kernels.spec import load
from tilefw.runtime.arguments.arrays import TypedArray
from tilefw.tile.dialect.atomic_ops import AtomicOp, AtomicRmwOp
from tilefw.tile.reference.interpret import run
from tilefw.tile.reference.memory import RefMemory

SIGNATURE = {"p": "*i32", "f": "*fp32", "h": "*fp16", "c": "*kfp32", "n": "i32"}


def built(line: str) -> list[AtomicOp]:
    source = f"def kernel(p, f, h, c, n):\n    {line}\n"
    names: dict[str, Any] = {"tl": tl}
    exec(source, names)
    module = build_module(tilefw.jit(source=source)(names["kernel"]), SIGNATURE, {})
    return [op for op in module.walk() if isinstance(op, AtomicOp)]


@pytest.mark.parametrize(("line", "code", "words"), [
    ("tl.atomic_and(f, 1)", "TFW0220", "tl.atomic_and is not there for fp32"),
    ("h.atomic_max(1.0)", "TFW0220", "tl.atomic_max is not there for fp16"),
    ("p.to(tl.pointer_type(tl.int8)).atomic_add(1)", "TFW0220", "tl.atomic_add is not there for int8"),
    ("tl.atomic_cas(p.to(tl.pointer_type(tl.int8)), 0, 1)", "TFW0220", "elements of 16, 32 and 64 bits"),
    ("tl.atomic_add(p, 1, sem='seq_cst')", "TFW0221", "sem is one of 'relaxed', 'acquire', 'release', 'acq_rel'"),
    ("tl.atomic_add(p, 1, scope='cluster')", "TFW0221", "scope is one of 'cta', 'gpu', 'sys', 'workgroup'"),
    ("tl.atomic_add(p, 1, sem=n)", "TFW0221", "sem is one of"),
    ("tl.atomic_add(c, 1.0)", "TFW0211", "Cannot store to a constant pointer"),
    ("tl.atomic_add(n, 1)", "TFW0206", "tl.atomic_add needs a pointer"),
    ("tl.atomic_add(p, 1, mask=n)", "TFW0207", "a mask is int1"),
    ("tl.atomic_add(p, tl.arange(0, 4))", "TFW0207", "the pointer is a scalar"),
    ("tl.atomic_add(p + tl.arange(0, 4), tl.zeros((2, 4), tl.int32))", "TFW0202", "does not fit pointers"),
    ("tl.atomic_add(p, None)", "TFW0201", "a number or a tensor is needed"),
])
def test_what_is_refused(line: str, code: str, words: str) -> None:
    with pytest.raises(CompileError) as caught:
        built(line)
    assert caught.value.code == code and words in str(caught.value)
    assert caught.value.place is not None and caught.value.place.line == 2


@pytest.mark.parametrize(("word", "scope"), [
    ("workgroup", "workgroup"), ("device", "device"), ("node", "system"), ("system", "system"),
])
def test_every_atomic_takes_the_words_of_a_node_for_its_scope(word: str, scope: str) -> None:
    for call in ("add(p, 1", "cas(p, 0, 1", "xchg(p, 1", "load(p", "store(p, 1", "poll(p, 1"):
        (op,) = built(f"tl.atomic_{call}, scope='{word}')")
        assert op.scope == scope


def test_defaults_and_words() -> None:
    (op,) = built("p.atomic_add(1)")
    assert isinstance(op, AtomicRmwOp) and (op.kind, op.order, op.scope, op.mask) == ("add", "acq_rel", "device", None)
    (op,) = built("tl.atomic_cas(p + tl.arange(0, 8), 0, n, sem='acquire', scope='cta')")
    assert (op.order, op.scope) == ("acquire", "workgroup") and op.acquires and not op.releases


@tilefw.jit
def extremes(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.atomic_max(out_ptr + tl.zeros((N,), tl.int32), x)
    tl.atomic_min(out_ptr + 1 + tl.zeros((N,), tl.int32), x)


def test_extremes_of_floats(ran: Callable[..., np.ndarray]) -> None:
    x = np.array([-3.5, 2.25, -0.0, 1e30, -1e-40, 7.0, -1e30, 0.0], np.float32)
    assert ran(extremes, x, (2,), np.float32, N=8).tolist() == [np.float32(1e30), np.float32(-1e30)]


ORDER_FREE = [
    ("atomic_mix", {"operation": op, "dtype": t, "share": 9, "n": 200, "block": 64})
    for op, t in (("add", "fp32"), ("add", "fp16"), ("max", "fp32"), ("xor", "int32"), ("xchg", "int64"), ("min", "uint32"))
] + [
    ("atomic_mix", {"operation": "cas", "mask": "none", "share": 4, "n": 128, "block": 64}),
    ("histogram", {"n": 400, "bins": 11, "block": 64, "dtype": "fp32"}), ("split_k_matmul", {"m": 33, "n": 20, "k": 100}),
    ("locked_accumulate", {"rows": 7, "columns": 10}), ("grid_argmax", {"n": 300, "block": 64}),
    ("chained_sum", {"n": 300, "block": 64}),
]


@pytest.mark.parametrize(("name", "parameters"), ORDER_FREE)
def test_library_kernels_come_to_the_same_from_the_last_program_to_the_first(name: str, parameters: dict[str, Any]) -> None:
    """What order could tell would be an error of the bounds, or of the kernel."""
    spec = load(name)
    launch = spec.prepare(spec.resolve(parameters), np.random.default_rng(0))
    made = instance(spec, launch)
    module = made.source.build()
    forwards = Reference(module, launch.grid, made.passed, budget=DEFAULT_BUDGET)
    memory = RefMemory()
    arguments = {k: memory.of_array(launch.buffer(k).array) if isinstance(v, TypedArray) else v for k, v in made.passed.items()}
    report = run(module, None, launch.grid, list(arguments.values()), memory=memory, backwards=True)
    assert not report.findings
    for output in launch.outputs:
        array, kind = launch.buffer(output).array, launch.buffer(output).dtype
        left = np.frombuffer(arguments[output].read_bytes(array.nbytes), array.dtype).reshape(array.shape)
        found = forwards.compare_values(output, formats.decode(left, kind))
        assert found.ok, f"{output} ({kind}): {found}"
