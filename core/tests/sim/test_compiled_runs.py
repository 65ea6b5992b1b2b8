"""Compiled runs leave what the plain steps leave: registers by lane, guards, divergence, undefined values, NaN."""

from __future__ import annotations

import gc
import random
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from running import Outcome, run

from tilefw.api.device import DEFAULT_CHECKS
from tilefw.api.errors import UsageError
from tilefw.sim.compiled import runs
from tilefw.sim.compiled.nests import Recorded
from tilefw.sim.compiled.runs import Compiled, CompiledRun
from tilefw.sim.compiled.traced import Traced, TracedLanes

pytest.importorskip("llvmlite")

OPERATIONS = ("add", "sub", "mul", "and", "fadd")


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """For each call of a compiled function, whether it gave results."""
    calls: list[bool] = []
    plain = Compiled.run

    def counted(self: Compiled, *given: Any) -> Any:
        made = plain(self, *given)
        calls.append(made is not None)
        return made

    monkeypatch.setattr(Compiled, "run", counted)
    yield calls


def both(monkeypatch: pytest.MonkeyPatch, text: str, *arrays: Any, **options: Any) -> tuple[Outcome, Outcome]:
    """The outcomes of plain and of compiled steps."""
    outcomes: list[Outcome] = []
    for mode in ("0", "always"):
        monkeypatch.setenv("TILEFW_JIT", mode)
        outcomes.append(run(text, *arrays, checks=DEFAULT_CHECKS, **options))
    return outcomes[0], outcomes[1]


def same(plain: Outcome, fast: Outcome) -> None:
    assert [str(f) for f in plain.report.findings] == [str(f) for f in fast.report.findings]
    assert plain.report.counters == fast.report.counters
    for expected, got in zip(plain.arrays, fast.arrays, strict=True):
        assert expected.tobytes() == got.tobytes()


def program(choose: random.Random) -> str:
    """Arithmetic on registers that differ by lane, by wave, by workgroup or not at all; guards, and a loop that lanes leave one by
    one. Some of the registers that are stored at the end were never written."""
    lines = [
        "param a0, arg0", "param a1, arg1", "mov r0, tid", "mov r1, wave", "mov r2, group", "mov r3, lane", "mul r10, r2, 16",
        "add r10, r10, r0", "index a2, a0, r10", "load r4, a2", f"mov r5, {0x3FC00000}", "mov r9, 0", "lt p0, r3, 3",
        "lt p1, r1, 1", "again:",
    ]
    known = [0, 1, 2, 3, 4, 5]
    for _ in range(choose.randint(4, 14)):
        a, b = (choose.choice([f"r{n}" for n in known] + ["7", str(0x40490FDB)]) for _ in range(2))
        to, guard = choose.choice((4, 5, 6, 7, 8)), choose.choice(("", "", "@p0 ", "@!p0 ", "@p1 "))
        kind = choose.random()
        if kind < 0.15:
            lines.append(f"{choose.choice(('lt', 'eq'))} {choose.choice(('p0', 'p1'))}, {a}, {b}")
        elif kind < 0.3:
            lines.append(f"{guard}select r{to}, {choose.choice(('p0', 'p1'))}, {a}, {b}")
            known.append(to)
        else:
            lines.append(f"{guard}{choose.choice(OPERATIONS)} r{to}, {a}, {b}")
            known.append(to)
    lines += ["add r9, r9, 1", "add r11, r1, r3", "and r11, r11, 3", "lt p2, r9, r11", "@p2 jump again", "mul r10, r10, 5"]
    for number in range(4, 9):
        lines += ["index a3, a1, r10", f"store a3, r{number}", "add r10, r10, 1"]
    return "\n".join([*lines, "end"])


@pytest.mark.parametrize("seed", range(12))
def test_random_programs_leave_the_same_compiled(monkeypatch: pytest.MonkeyPatch, compiled: list[bool], seed: int) -> None:
    choose = random.Random(seed)
    text = program(choose)
    data = np.random.default_rng(seed).standard_normal(3 * 16).astype(np.float32).view(np.uint32)
    same(*both(monkeypatch, text, data, np.zeros(3 * 16 * 5, np.uint32), grid=3, block=16))
    assert any(compiled), text


@pytest.mark.parametrize("limit, forms", [(16, 2), (1, 1)])
def test_a_run_has_no_more_forms_than_the_limit(
    monkeypatch: pytest.MonkeyPatch, compiled: list[bool], limit: int, forms: int
) -> None:
    """In the loop's first turn all lanes agree on r1, later they do not."""
    text = """
        param a0, arg0
        mov r0, tid
        mov r1, 1
        mov r9, 0
        again:
        add r1, r1, r1
        mul r2, r1, 3
        add r1, r2, r0
        add r9, r9, 1
        lt p0, r9, 3
        @p0 jump again
        index a1, a0, r0
        store a1, r1
        end
    """
    made: list[CompiledRun] = []
    plain = CompiledRun._made

    def kept(self: CompiledRun, *given: Any) -> Any:
        made.append(self)
        return plain(self, *given)

    monkeypatch.setattr(CompiledRun, "_made", kept)
    monkeypatch.setattr(runs, "FORMS", limit)
    same(*both(monkeypatch, text, np.zeros(8, np.uint32)))
    assert any(compiled) and max(map(made.count, made)) == forms


def test_a_nan_is_made_by_the_plain_steps(monkeypatch: pytest.MonkeyPatch, compiled: list[bool]) -> None:
    text = """
        param a0, arg0
        mov r0, tid
        index a1, a0, r0
        load r1, a1
        fadd r2, r1, 4286578688
        add r3, r2, 1
        mul r4, r3, 3
        store a1, r4
        end
    """
    infinite = np.array([np.inf] * 8, np.float32).view(np.uint32)
    same(*both(monkeypatch, text, infinite))
    assert False in compiled


def test_what_every_way_onwards_overwrites_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """And what one of them reads is."""
    text = """
        param a0, arg0
        mov r0, tid
        index a1, a0, r0
        add r1, r0, 1
        mul r2, r1, 3
        add r3, r2, r1
        lt p0, r0, 4
        @p0 jump low
        mov r1, 100
        low:
        add r4, r1, r3
        add r5, r4, r3
        add r5, r5, r5
        store a1, r5
        end
    """
    same(*both(monkeypatch, text, np.zeros(8, np.uint32)))


def test_a_function_keeps_its_code_when_others_have_been_compiled_since() -> None:
    """Those that were compiled last are remembered by their text; who runs another still holds it."""
    lanes = TracedLanes(8)
    a, b = lanes.symbol(32), lanes.symbol(32)
    total = lanes.add(a, b)  # type: ignore[attr-defined]
    made = Compiled(Traced(Recorded(tuple(lanes.steps), (a, b), (total,), 8), (0, 1), (), ((2, 2),)), (1, 1), 8)
    code = weakref.ref(runs._native(made._function.text))
    runs._native.cache_clear()
    gc.collect()
    assert code() is not None, "its machine code is freed"
    lane = np.arange(8, dtype=np.uint32).reshape(1, 1, 8)
    results = made.run([lane, lane], (1, 1, 8))
    assert results is not None and (results[0] == 2 * lane).all()


def test_another_word_for_the_mode_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEFW_JIT", "off")
    with pytest.raises(UsageError, match="TILEFW_JIT is one of 0, 1, always"):
        run("end")
