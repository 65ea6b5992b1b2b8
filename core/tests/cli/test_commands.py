"""Every verb: what it prints, its JSON, its exit codes; and for every mistake a message that helps."""

from __future__ import annotations

import io
import json
import subprocess
import sys

import numpy as np
import pytest

from tilefw.testing import distribution

KERNEL = """
import tilefw
import tilefw.language as tl

@tilefw.jit
def double(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, 2 * tl.load(x_ptr + offsets, offsets < n), offsets < n)

@tilefw.jit
def wrong(x_ptr, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), undefined_name)
"""


@pytest.fixture
def kernel_file(tmp_path):
    path = tmp_path / "my_kernels.py"
    path.write_text(KERNEL)
    return path


@pytest.mark.parametrize(
    "words",
    [
        ["--param", "n=70", "block=64", "vector_add"], ["vector_add", "--param", "n=70", "--param", "block=64"],
        ["vector_add", "--param=n=70", "block=64"], ["--param", "n=70", "--json", "--param", "block=64", "vector_add"],
    ],
)
def test_an_option_takes_several_assignments_at_once_or_one_by_one(tilefw, words):
    code, out, _ = tilefw("run", "--json", *words)
    assert code == 0 and {"n": 70, "block": 64}.items() <= json.loads(out)["parameters"].items()


def test_help_lists_every_verb_and_is_exit_0(tilefw):
    from tilefw.cli.commands import COMMANDS

    code, out, _ = tilefw("--help")
    assert code == 0 and all(f"  {verb} " in out for verb in COMMANDS)
    assert tilefw()[0] == 2


@pytest.mark.parametrize("verb", ["targets", "plugins", "kernels", "run", "compile", "simulate", "doctor", "explain"])
def test_every_verb_has_help(tilefw, verb):
    code, out, _ = tilefw(verb, "--help")
    assert code == 0 and f"tilefw {verb}" in out


@pytest.mark.parametrize(
    "words, code, said",
    [
        (["tragets"], 2, "did you mean 'targets'"),
        (["bench"], 2, "not there yet"),
        (["report"], 2, "not there yet"),
        (["trace", "vector_ad", "--target", "reference"], 2, "did you mean 'vector_add'"),
        (["trace", "vector_add"], 1, "reference makes no timeline"),
        (["trace", "vector_add", "-o", "x.png"], 2, "ends neither in .json nor in .svg"),
        (["trace", "nowhere.bin"], 2, "--launch"),
        (["trace", "nowhere.py"], 2, "write nowhere.py:FUNCTION"),
        (["trace", "nowhere.bin", "--launch", "nowhere.yaml", "--param", "n=3"], 2, "does not go with a file"),
        (["--frob"], 2, "does not take '--frob'"),
        (["targets", "--jsn"], 2, "did you mean '--json'"),
        (["targets", "extra"], 2, "does not take 'extra'"),
        (["explain", "TFW9999"], 2, "no error code"),
        (["run"], 2, "arguments are required"),
        (["run", "vector_ad"], 2, "did you mean 'vector_add'"),
        (["run", "vector_add", "--target", "refrence"], 2, "did you mean 'reference'"),
        (["run", "vector_add", "--param", "m=3"], 2, "no parameter 'm'"),
        (["run", "vector_add", "--param", "n"], 2, "is not name=value"),
        (["run", "vector_add", "--param", "n=x"], 2, "whole number"),
        (["run", "vector_add", "--param", "n=3", "m=4"], 2, "no parameter 'm'"),
        (["run", "vector_add", "--param", "n=3", "m"], 2, "does not take 'm'"),
        (["run", "vector_add", "n=3"], 2, "does not take 'n=3'"),
        (["run", "vector_add", "--budget", "many"], 2, "invalid whole value"),
        (["run", "vector_add", "--budget", "0"], 2, "budget"),
        (["run", "vector_add", "--executor", "gpu"], 2, "invalid choice"),
        (["run", "vector_add", "--checks", "bound"], 2, "did you mean 'bounds'"),
        (["run", "vector_add", "--triton"], 2, "go with a Python script"),
        (["run", "vector_add", "--compiler", "triton"], 2, "go with a Python script"),
        (["run", "nowhere.py", "--compiler", "gcc"], 2, "invalid choice"),
        (["run", "vector_add", "--", "x"], 2, "script"),
        (["run", "nowhere.py"], 2, "no file"),
        (["run", "nowhere.py", "--param", "a=1"], 2, "does not go with a script"),
        (["compile", "vector_ad"], 2, "did you mean 'vector_add'"),
        (["compile", "vector_add", "--emit", "sass"], 2, "invalid choice"),
        (["compile", "vector_add", "--signature", "x=*fp32"], 2, "does not go with"),
        (["compile", "vector_add", "--option", "num_warp=8"], 2, "did you mean 'num_warps'"),
        (["compile", "vector_add", "--option", "num_warps=3"], 2, "power of 2"),
        (["compile", "vector_add", "--emit", "lane"], 1, "no level 'lane'"),
        (["compile", "vector_add", "--emit", "bin"], 1, "no binary"),
        (["compile", "vector_add", "-o", "/nowhere/x"], 2, "cannot be written"),
        (["compile", "nowhere.mlir"], 1, "cannot be read"),
        (["compile", "nowhere.ttir"], 1, "cannot be read"),
        (["compile", "nowhere.py:f"], 2, "no file"),
        (["compile", "nowhere.py"], 2, "which function"),
        (["opt", "nowhere.mlir"], 2, "cannot be read"),
        (["opt", "-", "--pipelin", "cse"], 2, "did you mean '--pipeline'"),
        (["simulate", "x.ptx"], 2, "--launch"),
        (["simulate", "nowhere.ptx", "--launch", "nowhere.yaml", "--target", "reference"], 1, "cannot be read"),
    ],
)
def test_mistakes_have_a_message_and_an_exit_code(tilefw, words, code, said):
    got, out, err = tilefw(*words)
    assert (got, out) == (code, "") and said in err and err.startswith("error[TFW")


def test_listings_in_words_and_in_json(tilefw):
    assert "reference" in tilefw("targets")[1]
    listed = json.loads(tilefw("targets", "--json")[1])
    assert listed["schema"] == "tilefw.targets/1"
    reference = next(t for t in listed["targets"] if t["name"] == "reference")
    assert reference["provides"] == ["lower", "emit", "simulate"] and reference["status"] == "ok"
    plugins = json.loads(tilefw("plugins", "--json")[1])
    assert plugins["schema"] == "tilefw.plugins/1" and all({"name", "status", "error"} <= set(p) for p in plugins["plugins"])
    kernels = json.loads(tilefw("kernels", "--json")[1])["kernels"]
    assert {"vector_add", "integer_mix"} <= {k["name"] for k in kernels}
    assert all(f"{k['name']}: " in tilefw("kernels")[1] for k in kernels)


def test_a_broken_plugin_is_a_warning_in_listings_and_exit_4_where_it_is_needed(tilefw, tmp_path, monkeypatch):
    from tilefw.runtime.plugins import entry_points

    site = tmp_path / "site"
    distribution.write(site, "brk", "brk_plugin", name="brk", version="1")
    (site / "brk_plugin.py").write_text("TILEFW_API = (0, 1)\nraise RuntimeError('no luck')\n")
    monkeypatch.syspath_prepend(str(site))
    entry_points._scan_distributions.cache_clear()
    for verb in ("targets", "plugins"):
        code, _, err = tilefw(verb)
        assert code == 0 and "plugin 'brk' (brk 1) is broken: RuntimeError: no luck; TILEFW_DISABLE_PLUGINS=brk" in err
    listed = json.loads(tilefw("plugins", "--json")[1])["plugins"]
    assert next(p for p in listed if p["name"] == "brk")["status"] == "broken"
    code, _, err = tilefw("run", "vector_add", "--target", "brk-1")
    assert code == 4 and "no luck" in err
    assert tilefw("run", "vector_add", "--param", "n=10")[0] == 0, "other targets are not disturbed"
    assert tilefw("opt", "nowhere.mlir")[0] == 2, "nor is what takes passes of any plugin"
    monkeypatch.setenv("TILEFW_STRICT_PLUGINS", "1")
    assert tilefw("targets")[0] == 4


def test_a_backend_that_does_not_load_is_the_plugins_fault(tilefw, tmp_path, monkeypatch):
    from tilefw.runtime.plugins import entry_points

    site = tmp_path / "site"
    distribution.write(site, "lost", "lost_plugin", name="lost", version="1")
    (site / "lost_plugin.py").write_text(
        "from tilefw.api import TargetInfo, hookimpl\nTILEFW_API = (0, 1)\n@hookimpl\ndef tilefw_targets():\n"
        "    return [TargetInfo('lost-1', 'v', 'c', 's', 'nowhere:Backend', frozenset())]\n"
    )
    monkeypatch.syspath_prepend(str(site))
    entry_points._scan_distributions.cache_clear()
    for verb in ("run", "compile"):
        code, out, err = tilefw(verb, "vector_add", "--target", "lost-1")
        assert code == 4 and "No module named 'nowhere'" in err and "nowhere" not in out


def test_explain_prints_a_page_and_lists_all(tilefw):
    for word in ("TFW0501", "tfw0501", "501"):
        assert tilefw("explain", word)[1].startswith("# TFW0501: unknown target")
    assert "TFW0501  unknown target" in tilefw("explain")[1]
    assert json.loads(tilefw("explain", "501", "--json")[1])["title"] == "unknown target"


def test_run_gives_a_verdict(tilefw):
    code, out, _ = tilefw("run", "vector_add", "--param", "n=100", "--param", "dtype=fp16", "--seed", "3")
    assert code == 0 and out.startswith("pass  vector_add on reference (ref): n=100, dtype=fp16")
    verdict = json.loads(tilefw("run", "vector_add", "--param", "n=100", "--json")[1])
    assert verdict["schema"] == "tilefw.run/1" and verdict["verdict"] == "pass"
    assert [s["outcome"] for s in verdict["stages"]] == ["pass", "pass", "pass", "skipped", "pass", "pass"]
    assert verdict["error_over_bound"] <= 1 and verdict["resources"]["registers"] is None and verdict["resources"]["unknown"]


def test_run_fails_when_the_budget_runs_out(tilefw):
    code, out, _ = tilefw("run", "vector_add", "--budget", "10")
    assert code == 1 and out.startswith("FAIL") and "budget" in out


def test_save_temps(tilefw, tmp_path):
    tilefw("run", "vector_add", "--save-temps", tmp_path / "temps")
    assert "func.func" in (tmp_path / "temps" / "vector_add.tile.mlir").read_text()


def test_a_script_runs_with_the_target_as_default(tilefw, tmp_path, kernel_file):
    script = tmp_path / "program.py"
    script.write_text(
        "import sys, numpy as np\nfrom my_kernels import double\n"
        "x = np.arange(8, dtype=np.float32); out = np.zeros_like(x)\n"
        "r = double[(1,)](x, out, 8, BLOCK=8)\nprint(r.target, r.executor, sys.argv[1:], out[3])\n"
    )
    code, out, _ = tilefw("run", script, "--target", "reference", "--", "--target", "theirs")
    assert code == 0 and "reference ref ['--target', 'theirs'] 6.0" in out


@pytest.mark.parametrize("ending, code", [("sys.exit(7)", 7), ("sys.exit('no')", 1), ("sys.exit()", 0), ("", 0)])
def test_a_script_ends_with_its_own_exit_code(tilefw, tmp_path, ending, code):
    script = tmp_path / "program.py"
    script.write_text(f"import sys\n{ending}\n")
    assert tilefw("run", script)[0] == code


def test_a_script_shows_its_own_traceback_and_kernel_errors_none(tmp_path, kernel_file):
    crash, mistake = tmp_path / "crash.py", tmp_path / "mistake.py"
    crash.write_text("def f():\n    return 1 / 0\nf()\n")
    mistake.write_text("import numpy as np\nfrom my_kernels import wrong\nwrong[(1,)](np.zeros(4, np.float32), BLOCK=4)\n")
    command = [sys.executable, "-m", "tilefw", "run"]
    done = [subprocess.run([*command, str(file)], capture_output=True, text=True) for file in (crash, mistake)]
    assert done[0].returncode == 1 and "ZeroDivisionError" in done[0].stderr and "runpy" not in done[0].stderr
    assert done[1].returncode == 1 and "undefined_name" in done[1].stderr and "Traceback" not in done[1].stderr
    assert "my_kernels.py:12" in done[1].stderr and "^^^" in done[1].stderr


def test_compile_a_function_of_a_file_and_the_text_it_gave(tilefw, kernel_file, tmp_path):
    stated = ["--signature", "x_ptr=*fp32", "--signature", "out_ptr=*fp32", "--signature", "n=i32", "--constexpr", "BLOCK=64"]
    code, out, _ = tilefw("compile", f"{kernel_file}:double", "--emit", "tile", *stated)
    assert code == 0 and "tile.divisible = 16" in out and "tensor<64xf32>" in out
    text = tmp_path / "double.mlir"
    text.write_text(out)
    code, again, err = tilefw("compile", text, "--emit", "tile", "--time-passes", "--print-between-passes")
    assert code == 0 and "func.func" in again and "ms  cse" in err and "----- after cse -----" in err
    assert tilefw("compile", f"{kernel_file}:doble")[0] == 2
    code, _, err = tilefw("compile", f"{kernel_file}:double")
    assert code == 1 and "x_ptr" in err


def test_malformed_ir_is_shown_at_its_place_and_in_part(tilefw, tmp_path):
    path = tmp_path / "bad.mlir"
    path.write_text("func.func @k(%a: i32) {\n  %b = tile.addi %a, %zz : i32\n  func.return\n}\n")
    code, _, err = tilefw("opt", path)
    assert code == 1 and "value %zz is not defined" in err and "bad.mlir:2:22" in err
    path.write_text("func.func @" + "k" * 5000 + "(%a: i3x2) { func.return }\n")
    code, _, err = tilefw("opt", path)
    shown, carets = err.splitlines()[3:5]
    assert code == 1 and "…kkk" in shown and max(map(len, err.splitlines())) < 500 and shown[carets.index("^") :].startswith("i3x2")


def test_opt_pipelines_and_outputs(tilefw, tmp_path):
    text = tmp_path / "add.mlir"
    assert tilefw("compile", "vector_add", "--emit", "tile", "-o", text)[0] == 0
    code, _, err = tilefw("opt", text, "-p", "canonicalise")
    assert code == 2 and "did you mean 'canonicalize'" in err
    assert tilefw("opt", text, "-p", "cse{")[0] == 2
    code, _, err = tilefw("opt", text, "-o", tmp_path / "nowhere" / "x")
    assert code == 2 and "cannot be written" in err
    code, out, err = tilefw("opt", text, "-p", "default,tile-to-lane", "--print-between-passes")
    assert code == 0 and "lane." in out and "ModuleOp" not in err
    dumped = tmp_path / "dumped.mlir"
    dumped.write_text(err.split("// ----- after tile-to-lane -----")[1])
    assert tilefw("opt", dumped)[:2] == (0, out)


@pytest.mark.parametrize("text", ["", "func.func", "builtin.module {", "\x00\xff", "x" * 100_000, "(" * 20_000])
def test_malformed_ir_is_a_clear_error(tilefw, tmp_path, text):
    path = tmp_path / "bad.mlir"
    path.write_text(text)
    code, out, err = tilefw("compile", path)
    assert (code, out) == (1, "") and err.startswith("error[TFW")


def test_simulate_on_the_reference_writes_its_outputs(tilefw, tmp_path):
    x = np.arange(100, dtype=np.float32)
    np.save(tmp_path / "x.npy", x)
    tilefw("compile", "vector_add", "--emit", "asm", "-o", tmp_path / "code.mlir")
    launch = tmp_path / "launch.yaml"
    launch.write_text(
        "grid: [1]\nargs:\n  - {in: x.npy}\n  - {in: x.npy}\n  - {out: z, shape: [100], dtype: f32, fill: nan}\n"
        "  - {value: 100, dtype: i32}\n"
    )
    words = ["simulate", tmp_path / "code.mlir", "--target", "reference", "--launch", launch, "--out", tmp_path / "out.npz"]
    code, out, _ = tilefw(*words)
    assert code == 0 and "z: float32[100]" in out
    assert np.array_equal(np.load(tmp_path / "out.npz")["z"], 2 * x)
    assert json.loads(tilefw(*words, "--json")[1])["verdict"] == "pass"
    launch.write_text(launch.read_text().replace("[100], dtype", "[50], dtype"))
    code, out, err = tilefw(*words, "--json")
    assert code == 1 and json.loads(out)["findings"] and "bounds" in err


def test_a_bug_of_ours_says_so_and_leaves_a_reproducer(tilefw, monkeypatch):
    from tilefw.runtime.plugins import listings

    monkeypatch.setattr(listings, "plugins", lambda: 1 / 0)
    code, _, err = tilefw("targets")
    assert code == 3 and "this is a bug of tilefw" in err and "ZeroDivisionError" in err
    path = err.partition("reproducer: ")[2].strip()
    with open(path) as file:
        assert "while: tilefw targets" in file.read()


def test_a_reader_that_goes_away_is_no_error():
    command = f"{sys.executable} -m tilefw kernels --json | head -c 1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == ""


def test_doctor_tells_line_by_line(tilefw):
    lines = json.loads(tilefw("doctor", "--json")[1])["lines"]
    assert {"python", "numpy", "xdsl", "cache", "target reference"} <= {line["subject"] for line in lines}


def test_a_listing_goes_to_a_standard_output_that_takes_text_alone(monkeypatch):
    from tilefw.cli.main import main

    notebook = io.StringIO()
    monkeypatch.setattr(sys, "stdout", notebook)
    assert main(["compile", "vector_add", "--target", "reference", "--emit", "tile"]) == 0
    assert "tile.addf" in notebook.getvalue()
