"""`triton.testing`: one run on a simulator, no benchmark that is none, and comparisons as Triton makes them."""

from __future__ import annotations

import numpy as np
import pytest

from tilefw.api.errors import UnsupportedError
from tilefw.triton import testing


def test_a_simulator_runs_a_function_once() -> None:
    calls: list[int] = []
    milliseconds = testing.do_bench(lambda: calls.append(1))
    assert len(calls) == 1 and milliseconds >= 0
    assert len(testing.do_bench(lambda: None, quantiles=[0.5, 0.2, 0.8])) == 3
    assert len(testing.do_bench(lambda: None, return_mode="all")) == 1


def test_a_report_is_not_measured_on_a_simulator(capsys: pytest.CaptureFixture[str]) -> None:
    bench = testing.Benchmark(["n"], [1, 2], "provider", ["a"], ["A"], "speed-of-nothing", {})
    report = testing.perf_report(bench)(lambda n, provider: pytest.fail("it ran"))
    assert report.run(print_data=True, return_df=True) == []
    assert "speed-of-nothing: not measured, tilefw reference (reference) is simulated" in capsys.readouterr().err


def test_a_report_on_a_card_measures_each_line_at_each_place(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(testing, "on_simulator", lambda: False)
    benches = [testing.Benchmark(["m", "n"], [1, (2, 3)], "by", [10, 100], ["ten", "hundred"], name, {"k": 7}) for name in "ab"]
    report = testing.perf_report(benches)(lambda m, n, k, by: (m + n) * by + k)
    rows = [[1, 27, 207], [(2, 3), 57, 507]]
    assert report.run(return_df=True, print_data=True) == [rows, rows]
    assert "ten" in capsys.readouterr().out


def test_quantiles_are_numpys() -> None:
    times = [5.0, 1.0, 4.0, 2.0]
    for share in (0.0, 0.2, 0.5, 0.8, 1.0):
        assert testing._quantile(times, share) == pytest.approx(np.quantile(times, share))


def test_arrays_are_close_within_the_tolerance() -> None:
    x = np.array([1.0, np.nan])
    testing.assert_close(x, x + 0.009)
    testing.assert_close(np.float32(1), 1.001)
    for y in (x + 0.02, np.array([1.0, 2.0])):
        with pytest.raises(AssertionError):
            testing.assert_close(x, y)
    with pytest.raises(AssertionError, match="scalars differ"):
        testing.assert_close(1.0, 2.0, err_msg="scalars differ")
    testing.assert_close(1.0, 2.0, atol=0, rtol=1)


def test_what_no_simulator_knows_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="bandwidth"):
        testing.get_dram_gbps()
