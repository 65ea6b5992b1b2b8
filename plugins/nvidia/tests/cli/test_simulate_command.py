"""`tilefw simulate` on PTX from a file: results, findings with their places, and PTX and launches that are wrong."""

from __future__ import annotations

import json

import numpy as np
import pytest

LAUNCH = """
grid: [3]
args:
  - {in: x.npy}
  - {in: y.npy}
  - {out: z, shape: [3000], dtype: f32, fill: nan}
  - {value: 3000, dtype: i32}
"""


@pytest.fixture
def tilefw(capsysbinary, tmp_path, monkeypatch):
    """A folder with PTX of vector_add, arrays and a launch file; `tilefw(…)` gives code, stdout, stderr."""
    from tilefw.cli.main import main

    monkeypatch.setenv("TILEFW_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)

    def run(*words):
        code = main([str(word) for word in words])
        out, err = (text.decode() for text in capsysbinary.readouterr())
        assert "Traceback" not in out + err
        return code, out, err

    assert run("compile", "vector_add", "--target", "nvidia-sm80", "-o", "add.ptx")[0] == 0
    rng = np.random.default_rng(0)
    for name in "xy":
        np.save(tmp_path / f"{name}.npy", rng.normal(size=3000).astype(np.float32))
    (tmp_path / "launch.yaml").write_text(LAUNCH)
    return run


def simulate(tilefw, ptx="add.ptx", launch="launch.yaml", *more):
    return tilefw("simulate", ptx, "--target", "nvidia-sm80", "--launch", launch, *more)


def test_results_are_written_and_all_checks_are_clean(tilefw, tmp_path):
    code, out, _ = simulate(tilefw, "add.ptx", "launch.yaml", "--out", "out.npz", "--checks", "all", "--json")
    report = json.loads(out)
    assert code == 0 and report["verdict"] == "pass" and report["findings"] == [] and report["counters"]["instructions"] > 3000
    assert np.array_equal(np.load(tmp_path / "out.npz")["z"], np.load(tmp_path / "x.npy") + np.load(tmp_path / "y.npy"))


def test_an_access_out_of_bounds_names_instruction_file_and_lane(tilefw, tmp_path):
    (tmp_path / "short.yaml").write_text(LAUNCH.replace("[3000]", "[2999]"))
    code, out, err = simulate(tilefw, "add.ptx", "short.yaml", "--out", "out.npz", "--json")
    (finding,) = json.loads(out)["findings"]
    assert code == 1 and finding["check"] == "bounds" and "st.global" in finding["instruction"]
    assert finding["code_place"].startswith("add.ptx:") and finding["workgroup"] == [2, 0, 0] and finding["lane"] == 23
    assert "vector_add.py" in err, "the line of the kernel's own source"
    assert not (tmp_path / "out.npz").exists()


def test_a_kernel_that_never_ends_runs_out_of_budget(tilefw, tmp_path):
    text = (tmp_path / "add.ptx").read_text().replace("ret;", "$again:\n\tbra $again;\n\tret;")
    (tmp_path / "loop.ptx").write_text(text)
    code, _, err = simulate(tilefw, "loop.ptx", "launch.yaml", "--budget", "100000")
    assert code == 1 and "100000 instructions" in err and "bra $again" in err


def test_a_wrong_count_of_arguments_lists_the_parameters(tilefw, tmp_path):
    (tmp_path / "three.yaml").write_text("\n".join(LAUNCH.splitlines()[:-1]))
    code, _, err = simulate(tilefw, "add.ptx", "three.yaml")
    assert code == 1 and "takes 4 arguments, not 3" in err and "vector_add_param_3" in err


@pytest.mark.parametrize("damage", ["cut", "noise", "empty", "unknown instruction", "no such label", "undeclared register"])
def test_malformed_ptx_is_a_clear_error(tilefw, tmp_path, damage):
    text = (tmp_path / "add.ptx").read_text()
    assert "add.rn.f32" in text or "add.f32" in text
    damaged = {
        "cut": text[: len(text) // 2],
        "noise": "".join(chr(33 + i * 7 % 90) for i in range(5000)),
        "empty": "",
        "unknown instruction": text.replace("ret;", "frobnicate.b32 %r1, %r1;\n\tret;"),
        "no such label": text.replace("ret;", "bra $nowhere;\n\tret;"),
        "undeclared register": text.replace("ret;", "mov.b32 %r1, %zz9;\n\tret;"),
    }[damage]
    (tmp_path / "bad.ptx").write_text(damaged)
    code, out, err = simulate(tilefw, "bad.ptx")
    assert (code, out) == (1, "") and err.startswith("error[TFW0") and "bad.ptx" in err


def test_a_saved_artifact_needs_no_target(tilefw, tmp_path):
    from tilefw.runtime.module import load

    load("add.ptx", "nvidia-sm80").artifact.save(tmp_path / "add.tilefw")
    assert tilefw("simulate", "add.tilefw", "--launch", "launch.yaml")[0] == 0
    code, _, err = tilefw("simulate", "add.tilefw", "--target", "reference", "--launch", "launch.yaml")
    assert code == 1 and "not for reference" in err


def test_without_a_target_the_error_says_whose_code_it_was_taken_for(tilefw):
    code, _, err = tilefw("simulate", "add.ptx", "--launch", "launch.yaml")
    assert code == 1 and "read as code of 'reference'; --target" in err


def test_a_budget_is_the_targets_own(tilefw):
    code, out, _ = tilefw("run", "vector_add", "--target", "nvidia-sm80", "--budget", "100")
    assert code == 1 and "error[TFW0810]" in out and "more than 100 instructions" in out


HALF_READ = """.version 7.0
.target sm_80
.address_size 64
.visible .entry half(.param .u64 out)
.reqntid 32, 1, 1
{
	.reg .pred %p<2>;
	.reg .b32 %r<4>;
	.reg .b64 %rd<4>;
	.shared .align 4 .b8 tile[128];
	ld.param.u64 %rd1, [out];
	mov.u32 %r1, %tid.x;
	shl.b32 %r2, %r1, 2;
	mov.u32 %r3, tile;
	add.s32 %r3, %r3, %r2;
	st.shared.b32 [%r3], %r1;
	bar.sync 0;
	setp.lt.u32 %p1, %r1, 16;
	ld.shared.b32 %r2, [%r3];
	cvt.u64.u32 %rd2, %r1;
	shl.b64 %rd2, %rd2, 2;
	add.s64 %rd3, %rd1, %rd2;
	st.global.b32 [%rd3], %r2;
	ret;
}
"""


@pytest.mark.parametrize(("load", "code"), [("ld.shared", 0), ("@%p1 ld.shared", 1)])
def test_a_warning_is_a_finding_and_leaves_the_outputs(tilefw, tmp_path, load, code):
    text = HALF_READ.replace("ld.shared", load).replace("st.global", "@%p1 st.global" if code else "st.global")
    (tmp_path / "half.ptx").write_text(text)
    (tmp_path / "half.yaml").write_text("grid: [1]\nargs:\n  - {out: z, shape: [32], dtype: i32, fill: 0}\n")
    got, out, _ = simulate(tilefw, "half.ptx", "half.yaml", "--checks", "all", "--out", "out.npz", "--json")
    report = json.loads(out)
    assert got == code and [f["code"] for f in report["findings"]] == ["TFW0815"] * code, report["findings"]
    assert np.array_equal(np.load(tmp_path / "out.npz")["z"], np.arange(32) * (np.arange(32) < (16 if code else 32)))
