"""`tilefw.debug` runs kernels as Python: the reference's results bit for bit, pdb at the kernel's lines, faults with a place."""

from __future__ import annotations

import io
import pdb
import sys
from typing import Any

import debugged_kernels as kernels
import numpy as np
import pytest

import tilefw
import tilefw.debug
import tilefw.language as tl
from tilefw.kernels.reference import typed
from tilefw.kernels.spec import load

SMALL: dict[str, Any] = {"n": 40, "m": 16, "k": 16, "rows": 4, "columns": 16, "block": 16}
# Each with something that the others lack: masks, gathers, tuples of scans, sorts, descriptors, block pointers, atomics, views, …
LIBRARY = (
    "vector_add", "elementwise", "cast", "rmsnorm", "block_pointer_matmul", "descriptor_matmul", "argmax", "scan_tile",
    "gather_tile", "sort_tile", "histogram", "atomic_mix", "locked_accumulate", "chained_sum", "rearrange", "shared_buffers",
)


@pytest.mark.parametrize("name", LIBRARY)
def test_results_are_the_references_bit_for_bit(name: str) -> None:
    spec = load(name)
    known = {parameter.name for parameter in spec.info.parameters}
    given = spec.resolve({key: value for key, value in SMALL.items() if key in known})
    eager, other = (spec.prepare(given, np.random.default_rng(0)) for _ in range(2))
    arguments = {key: typed(value) for key, value in eager.arguments.items()}
    tilefw.debug.run(spec.kernel, eager.grid, **arguments, **eager.constexprs)
    arguments = {key: typed(value) for key, value in other.arguments.items()}
    spec.kernel[other.grid](**arguments, **other.constexprs, target="reference")
    for output in other.outputs:
        assert eager.buffer(output).array.tobytes() == other.buffer(output).array.tobytes(), output


def test_python_of_every_kind_means_what_it_means_to_the_compiler() -> None:
    made = np.random.default_rng(1)

    def arrays() -> list[np.ndarray]:
        return [x.copy() for x in (values, square, np.zeros(2, np.int32), np.zeros(16, np.float32))]

    values, square = made.normal(size=16).astype(np.float32), made.normal(size=(16, 16)).astype(np.float32)
    for n, limit in ((11, 3), (16, 0)):
        eager, other = arrays(), arrays()
        tilefw.debug.run(kernels.mixture, (2,), *eager, n, LIMIT=limit, BLOCK=16)
        kernels.mixture[(2,)](*other, n, LIMIT=limit, BLOCK=16, target="reference")
        for found, wanted in zip(eager, other, strict=True):
            assert found.tobytes() == wanted.tobytes()


def test_a_comprehension_goes_over_what_a_condition_chooses() -> None:
    for wide in (True, False):
        eager, other = np.zeros(8, np.int32), np.zeros(8, np.int32)
        tilefw.debug.run(kernels.listed, (1,), eager, 5, WIDE=wide, BLOCK=8)
        kernels.listed[(1,)](other, 5, WIDE=wide, BLOCK=8, target="reference")
        assert eager.any() and eager.tobytes() == other.tobytes()


def test_a_bound_of_zero_is_a_bound() -> None:
    x, out = np.ones(8, np.float32), np.ones(8, np.float32)
    tilefw.debug.run(kernels.padded, (1,), x, out, 0, BLOCK=8)
    assert np.isnan(out).all()


def _session(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *commands: str) -> str:
    """What pdb writes while it stands in a kernel and is given commands."""
    x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    monkeypatch.setattr(sys, "breakpointhook", sys.__breakpointhook__)
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(commands) + "\n"))
    with tilefw.debug.eager():
        kernels.stopping[(1,)](x, out, 8, BLOCK=8)
    assert sys.breakpointhook is sys.__breakpointhook__ and np.array_equal(out, 2 * x)
    return capsys.readouterr().out


def test_the_debugger_stops_in_a_kernel_prints_tiles_and_steps_line_by_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = _session(monkeypatch, capsys, "p x", "p tl.sum(x), x + 1, x[2], x.max()", "n", "p y", "n", "c")
    stops = [line[3:] for line in shown.splitlines() if line.startswith("-> ")]
    assert stops[:2] == ["y = doubled(x, 2)", "tl.store(out_ptr + offsets, y, mask=offsets < n)"]
    assert "debugged_kernels.py" in shown and "[0. 1. 2. 3. 4. 5. 6. 7.] (fp32[8])" in shown
    assert "(28.0 (fp32), [1. 2. 3. 4. 5. 6. 7. 8.] (fp32[8]), np.float32(2.0), 7.0 (fp32))" in shown
    assert "[ 0.  2.  4.  6.  8. 10. 12. 14.] (fp32[8])" in shown


def test_a_step_enters_another_jit_function_and_nothing_of_what_carries_it_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = _session(monkeypatch, capsys, "s", "s", "s", "p value", "w", "c")
    stops = [line[3:] for line in shown.splitlines() if line.startswith("-> ")]
    assert stops[:4] == ["y = doubled(x, 2)", "def doubled(value, factor):", "wider = value * factor", "return wider"]
    called = shown.partition("stopping()")[2]
    assert "-> y = doubled(x, 2)" in called and "tilefw/debug/" not in shown


def test_a_breakpoint_of_pdb_stops_at_a_line_of_a_kernel() -> None:
    source = kernels.doubled.source
    stops: list[str] = []

    class Watching(pdb.Pdb):
        def user_line(self, frame: Any) -> None:
            if frame.f_code.co_name == "doubled":
                stops.append(f"{frame.f_locals['value'].numpy().sum()}")
            self.set_continue()

    watching = Watching()
    watching.set_break(source.file, source.tree.body[0].lineno)

    def launch() -> None:
        x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
        tilefw.debug.run(kernels.mixture, (1,), x, np.eye(8, dtype=np.float32), np.zeros(2, np.int32), out, 8, LIMIT=1, BLOCK=8)

    watching.runcall(launch)
    assert stops == ["28.0"]


def test_prints_show_elements_and_one_program_may_run_alone(capsys: pytest.CaptureFixture[str]) -> None:
    x = np.zeros(3, np.int32)
    ran = tilefw.debug.run(kernels.numbered, (3,), x, program=(1,), BLOCK=4)
    assert ran.programs == 1 and x.tolist() == [0, 7, 0]
    wanted = ["block 4", "offsets [0 1 2 3] (int32[4])", "program (1, 0, 0): half: [0 0 1 1]"]
    assert capsys.readouterr().out.splitlines() == wanted
    assert tilefw.debug.run(kernels.numbered, (3,), x, program=2, BLOCK=4).programs == 1 and x.tolist() == [0, 7, 7]
    for outside in (3, -1, (3,)):
        with pytest.raises(tilefw.LaunchError) as refused:
            tilefw.debug.run(kernels.numbered, (3,), x, program=outside, BLOCK=4)
        assert refused.value.code == "TFW0356"


def _code(kernel: Any, grid: tuple[int, ...], *args: Any, **constants: Any) -> tilefw.KernelError:
    with pytest.raises(tilefw.KernelError) as refused:
        tilefw.debug.run(kernel, grid, *args, **constants)
    return refused.value


def test_an_access_out_of_bounds_names_line_argument_and_element_and_writes_nothing() -> None:
    x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    error = _code(kernels.beyond, (1,), x, out, BLOCK=8)
    assert error.code == "TFW0441" and "bounds of x_ptr" in error.message and "element 8" in str(error.note)
    assert error.place is not None and "tl.load(x_ptr + offsets * 2)" in error.place.text
    assert not out.any()


def test_what_a_kernel_cannot_do_here_is_said_by_name() -> None:
    one = np.zeros(1, np.int32)
    waits = _code(kernels.waiting, (2,), one)
    assert waits.code == "TFW0354" and "(0, 0, 0)" in waits.message
    assert _code(kernels.assembly, (1,), one).code == "TFW0619"
    unset = _code(kernels.unset, (1,), one, 2)
    assert unset.code == "TFW0104" and unset.place is not None and "tl.store(x_ptr, y)" in unset.place.text
    in_list, after_it = _code(kernels.unset_in_a_list, (1,), one, 2), _code(kernels.variable_of_a_list, (1,), one)
    for error, text in ((in_list, "found = ["), (after_it, "+ item)")):
        assert error.code == "TFW0104" and error.place is not None and text in error.place.text
    refused = _code(kernels.breaking, (1,), one, 2)
    assert refused.code == "TFW0102" and refused.place is not None and refused.place.text.strip() == "break"
    assert _code(kernels.badly_formatted, (1,), one, BLOCK=4).code == "TFW0114"
    assert _code(kernels.calling_by_any_name, (1,), one).code == "TFW0102"
    assert _code(kernels.numbered, (4,), np.zeros(4, np.int32), BLOCK=4).code == "TFW0812"


def test_an_assertion_that_always_fails_stops_the_program_that_comes_to_it() -> None:
    x = np.zeros(1, np.int32)
    assert _code(kernels.never_negative, (1,), x, SIGNED=False).code == "TFW0108"
    tilefw.debug.run(kernels.never_negative, (1,), x, SIGNED=True)
    assert x.tolist() == [7]
    stopped = _code(kernels.never_negative, (1,), np.full(1, -1, np.int32), SIGNED=True)
    assert stopped.code == "TFW0812" and "negative" in str(stopped)


def test_the_arguments_of_a_starred_parameter_are_a_tuple() -> None:
    x = np.zeros(1, np.int32)
    tilefw.debug.run(kernels.calling_with_many, (1,), x)
    assert x.tolist() == [2]


def test_a_tuned_kernel_runs_with_its_first_configuration() -> None:
    x = np.zeros(8, np.int32)
    ran = tilefw.debug.run(kernels.tuned, lambda given: (8 // given["BLOCK"],), x, 8)
    assert ran.programs == 2 and x.tolist() == list(range(8))
    kernels.tuned[lambda given: (8 // given["BLOCK"],)](x, 8, target="reference")
    assert len(kernels.tuned.cache) == 2


def test_outside_of_a_debugger_nothing_changes() -> None:
    with pytest.raises(tilefw.CompileError) as refused:
        tl.sum(3, 0)
    assert refused.value.code == "TFW0113"
    x = np.zeros(3, np.int32)
    with tilefw.debug.eager(program=(0,)):
        pass
    kernels.numbered[(3,)](x, BLOCK=4, target="reference")
    assert x.tolist() == [7, 7, 7]
