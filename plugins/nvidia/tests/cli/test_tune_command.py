"""`tilefw tune` chooses what the model of time says is fastest, goes on where it was interrupted, and launches find its choice."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilefw
from tilefw.api.errors import KernelError
from tilefw.cli.main import main
from tilefw.cli.scripts import function
from tilefw.cli.tuning_workers import AskedFor, TuningProcesses, trial, versions
from tilefw.kernels import tuning
from tilefw.runtime.compilation import fingerprint
from tilefw.runtime.plugins.loader import Target
from tilefw.runtime.tuned_choices import KEPT

TUNE = ("tune", "vector_add", "--target", "nvidia-sm80", "--param", "n=20000", "--over", "block=256,1024", "num_warps=1,4")
SOURCE = """import tilefw
import tilefw.language as tl

@tilefw.autotune([tilefw.Config({"BLOCK": 128}, num_warps=4), tilefw.Config({"BLOCK": 1024}, num_warps=1)], key=["n"])
@tilefw.jit
def double(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < n) * 2, mask=at < n)
"""


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEFW_CACHE_DIR", str(tmp_path / "state"))


def test_the_choice_is_the_fastest_trial_and_a_launch_takes_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "vector_add", "--target", "nvidia-sm80", "--param", "n=20000", "--tuned"]) == 2
    assert "no configuration of vector_add is kept" in capsys.readouterr().err
    assert main([*TUNE, "--timed", "75", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    timed = {json.dumps(t["configuration"]): t["seconds"] for t in found["trials"] if t["seconds"] is not None}
    assert found["estimated"] == 4 and len(timed) == 3 and found["choice"] == json.loads(min(timed, key=timed.__getitem__))
    assert main(["run", "vector_add", "--target", "nvidia-sm80", "--param", "n=20000", "--tuned", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["parameters"]
    assert {name: told[name] for name in found["choice"]} == found["choice"]


def test_a_search_goes_on_where_it_was_interrupted(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    done, whole = [], tuning.timed

    def interrupted(launch: Any, configuration: dict, best: float | None) -> Any:
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(configuration)
        return whole(launch, configuration, best)

    monkeypatch.setattr(tuning, "timed", interrupted)
    assert main([*TUNE, "--timed", "100"]) == 130
    assert "4 of 4 configurations were estimated, 2 tried" in capsys.readouterr().err
    monkeypatch.setattr(tuning, "timed", lambda launch, one, best: done.append(one) or whole(launch, one, best))
    assert main([*TUNE, "--timed", "100", "--resume"]) == 0
    assert "2 configurations were timed before" in capsys.readouterr().err
    assert len(done) == len({json.dumps(one) for one in done}), "nothing is timed twice"


def test_processes_beside_this_one_time_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    found = []
    for more in ((), ("--jobs", "2")):
        assert main([*TUNE[:-1], "num_warps=1", "--timed", "100", *more, "--json"]) == 0
        found.append(json.loads(capsys.readouterr().out))
    alone, beside = ({json.dumps(t["configuration"]): t["seconds"] for t in told["trials"]} for told in found)
    assert alone == beside and len(alone) == 2 and found[0]["choice"] == found[1]["choice"]


def test_workers_have_the_versions_of_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = versions("nvidia-sm80")
    assert "tilefw-core" in ours and "tilefw-nvidia" in ours
    versions.cache_clear()
    monkeypatch.setattr(Target, "toolchain_digest", lambda _: "another assembler")
    with pytest.raises(KernelError, match=r"a worker has .*another assembler, the search tilefw-core"):
        trial(AskedFor("nvidia-sm80", ours, b""), {}, None)
    versions.cache_clear()


class _Ends:
    """Ends the process that unpickles it."""

    def __reduce__(self) -> Any:
        return os._exit, (1,)


def test_a_process_that_is_lost_is_said() -> None:
    asked = AskedFor("nvidia-sm80", versions("nvidia-sm80"), pickle.dumps(_Ends()))
    with pytest.raises(KernelError, match="was lost"), TuningProcesses(asked, 1) as processes:
        list(processes.timed([{}], None))


def test_an_address_without_a_scheduler_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("distributed")
    assert main([*TUNE, "--scheduler", "nowhere"]) == 2
    assert "TFW0973" in capsys.readouterr().err


def test_autotune_chooses_by_the_model_and_takes_what_was_kept_without_tuning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "double.py"
    monkeypatch.chdir(tmp_path)
    path.write_text(SOURCE)

    def launched():
        kernel, x = function(str(path), "double"), np.ones(5000, np.float32)
        with tilefw.target("nvidia-sm80", executor="sim"):
            kernel[lambda meta: (tilefw.cdiv(5000, meta["BLOCK"]),)](x, np.zeros_like(x), 5000)
        return kernel

    tuned = launched()
    assert tuned.chosen_by == "the model of time"
    assert all(1e-6 < seconds < 1e-4 for seconds in tuned.configs_timings.values())
    assert tuned.best_config is min(tuned.configs_timings, key=tuned.configs_timings.__getitem__)
    types = ("--signature", "y_ptr=*fp32:16", "x_ptr=*fp32", "n=i32")
    stated = (*types, "--scalar", "n=5000", "--extent", "x_ptr=20000", "y_ptr=20000")
    assert main(["tune", "double.py:double", "--target", "nvidia-sm80", *stated, "--grid", "cdiv(n, BLOCK)"]) == 0
    path.write_text("# The place of a kernel is no part of a problem.\n" + SOURCE)
    again = launched()
    assert again.chosen_by == KEPT and not again.configs_timings
    assert again.best_config in again.configs
    path.write_text(SOURCE.replace("* 2", "* 3"))
    assert launched().chosen_by == "the model of time", "another kernel's choice"


def test_a_choice_is_of_one_compiler_and_its_assembler(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("vector_add", "--target", "nvidia-sm80", "--param", "n=20000")
    assert main(["tune", *asked, "--over", "block=256", "num_warps=1"]) == 0
    assert main(["run", *asked, "--tuned"]) == 0
    monkeypatch.setattr(Target, "toolchain_digest", lambda _: "another assembler")
    assert main(["run", *asked, "--tuned"]) == 2
    monkeypatch.undo()
    monkeypatch.setattr(fingerprint, "_core", lambda: "another compiler")
    assert main(["run", *asked, "--tuned"]) == 2
    assert "no configuration of vector_add is kept" in capsys.readouterr().err


@pytest.mark.parametrize(("hook", "count"), [("", 2), ("pre_hook=lambda args, reset_only=False: None, ", 8)])
def test_of_many_candidates_autotune_runs_those_that_estimates_leave(
    hook: str, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All where a hook may change what is launched."""
    path, x = tmp_path / "double.py", np.ones(5000, np.float32)
    sizes = ", ".join(f'tilefw.Config({{"BLOCK": {2**k}}}, num_warps=1)' for k in range(5, 13))
    two = 'tilefw.Config({"BLOCK": 128}, num_warps=4), tilefw.Config({"BLOCK": 1024}, num_warps=1)'
    path.write_text(SOURCE.replace(two, sizes).replace("key=", f"{hook}key="))
    monkeypatch.setenv("TRITON_PRINT_AUTOTUNING", "1")
    kernel, y = function(str(path), "double"), np.zeros_like(x)
    with tilefw.target("nvidia-sm80", executor="sim"):
        kernel[lambda meta: (tilefw.cdiv(5000, meta["BLOCK"]),)](x, y, 5000)
    assert len(kernel.configs) == 8 and len(kernel.configs_timings) == count and (y == 2).all()
    assert kernel.best_config in kernel.configs_timings and f"{count} of 8 candidates run" in capsys.readouterr().out


def test_a_grid_that_is_no_arithmetic_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "double.py"
    path.write_text(SOURCE)
    assert main(["tune", f"{path}:double", "--target", "nvidia-sm80", "--signature", "n=i32", "--grid", "open('x')"]) != 0
    assert "is no arithmetic of the launch's values" in capsys.readouterr().err


def test_a_search_does_not_go_on_from_one_over_other_values(capsys: pytest.CaptureFixture[str]) -> None:
    both = ("tune", "vector_add", "--target", "nvidia-sm80", "--param", "n=20000", "num_warps=1")
    assert main([*both, "--over", "block=256,1024"]) == 0
    capsys.readouterr()
    assert main([*both, "--over", "block=128", "--resume", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [trial["configuration"]["block"] for trial in told["trials"]] == [128]
    assert told["choice"] == {"block": 128, "num_warps": 1}, "a choice says what it was made for"


def test_what_cannot_be_launched_is_one_refused_configuration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "double.py"
    path.write_text(SOURCE)
    stated = ("--signature", "x_ptr=*fp32", "y_ptr=*fp32", "n=i32", "--scalar", "n=512", "--extent", "x_ptr=2048", "y_ptr=2048")
    assert main(["tune", f"{path}:double", "--target", "nvidia-sm80", *stated, "--grid", "n // BLOCK", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["choice"]["BLOCK"] == 128 and sorted("is empty" in one["why"] for one in told["trials"]) == [False, True]


def test_a_choice_that_cannot_be_read_or_kept_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ("vector_add", "--target", "nvidia-sm80", "--param", "n=20000")
    assert main(["tune", *asked, "--over", "block=256", "num_warps=1", "--json"]) == 0
    Path(json.loads(capsys.readouterr().out)["kept"]).write_text('{"choice": ["block", 256]}')
    assert main(["run", *asked, "--tuned"]) == 2
    assert "no configuration of vector_add is kept" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TILEFW_CACHE_DIR", str(tmp_path / "file"))
    assert main(["tune", *asked, "--over", "block=256", "num_warps=1"]) == 0
    assert "kept nowhere" in capsys.readouterr().out


@pytest.mark.parametrize("argv", [
    ("run", "double.py"), ("run", "all_reduce", "--devices", "2"), ("profile", "double.py:double", "--target", "nvidia-sm80"),
])
def test_a_choice_is_refused_where_none_is_taken(
    argv: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "double.py").write_text(SOURCE)
    assert main([*argv, "--tuned"]) == 2
    assert "--tuned does not go with" in capsys.readouterr().err
