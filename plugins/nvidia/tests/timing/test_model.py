"""The model of time for sm_80: no figure is dead, every instruction has a cost, and time goes where the code's faults are."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from tilefw.api.errors import CodeError, UnsupportedError
from tilefw.cli.main import main
from tilefw.kernels.profiled import profiled, recorded
from tilefw.kernels.spec import load
from tilefw.runtime.plugins.loader import find_target
from tilefw.runtime.recording import profile_of
from tilefw.testing.figures import dead_figures

TARGET, HOPPER = "nvidia-sm80", "nvidia-sm90a"
# Small launches that together use every pipe and level of memory.
LAUNCHES = (
    ("vector_add", {"n": 5000}), ("matmul", {"m": 64, "n": 64, "k": 64}), ("softmax", {"rows": 2, "columns": 300}),
    ("elementwise", {"n": 2048, "block": 2048, "dtype": "fp64"}), ("vector_add", {"n": 5000, "dtype": "fp16"}),
    ("matmul", {"m": 16, "n": 16, "k": 256, "block_m": 16, "block_n": 16}),
    ("sparse_matvec", {}), ("embedding", {}), ("atomic_mix", {"n": 4096, "share": 4096}),
)
# Pipes of an instruction a cycle are noticed by four waves of a scheduler, and what follows a product by products in a row.
OF_HOPPER = (
    ("elementwise", {"operation": "erf", "n": 8192, "block": 8192, "num_warps": 16}),
    ("cast", {"source": "fp32", "result": "int32", "n": 8192, "block": 8192, "num_warps": 16}),
    ("matmul", {"m": 128, "n": 128, "k": 256, "block_m": 128, "block_n": 128, "block_k": 64}),
)


@pytest.mark.parametrize(("target", "launches"), [(TARGET, LAUNCHES), (HOPPER, LAUNCHES + OF_HOPPER)])
def test_every_figure_changes_the_time_of_some_launch(target: str, launches: tuple) -> None:
    known = {spec: load(spec) for spec, _ in launches}
    made = (recorded(known[name], {k: str(v) for k, v in parameters.items()}, target) for name, parameters in launches)
    assert dead_figures(find_target(target).backend, made) == set()


def test_a_product_of_a_warpgroup_waits_for_the_copy_engine_and_then_for_the_matrix_units() -> None:
    shape = {"m": "256", "n": "256", "k": "512", "block_m": "128", "block_n": "128", "block_k": "64", "num_warps": "4"}
    one, three = (profiled(load("matmul"), {**shape, "num_stages": str(stages)}, HOPPER) for stages in (1, 3))
    assert one.peak == pytest.approx(512 * 2 * 4 * 132 * 1.83e9)
    assert three.seconds < 0.95 * one.seconds
    assert three.limits[0].cause == "tensor"
    # Halves of 256x256 elements: what the engine stores goes to memory too.
    assert three.roofline[-1].nbytes == pytest.approx(2 * 256 * 256, rel=0.05)


@pytest.mark.parametrize("dimensions", range(1, 6))
def test_copies_of_an_engine_belong_to_phases_in_every_dimension(dimensions: int) -> None:
    timing = find_target(HOPPER).backend.timing()
    load_of = f"cp.async.bulk.tensor.{dimensions}d.shared::cluster.global.mbarrier::complete_tx::bytes"
    cost = timing.cost(SimpleNamespace(mnemonic=load_of, unit="async", text=load_of))
    assert cost.role == "bulk" and cost.latency == timing.figures["engine_latency"]


def test_a_figure_that_the_file_lacks_is_named() -> None:
    backend = find_target(TARGET).backend
    with pytest.raises(CodeError, match=r"sm_80\.yaml has no figure 'l2_rate'"):
        backend.timing(backend.timing().figures.without("l2_rate"))


def test_a_chip_without_a_file_has_no_model() -> None:
    with pytest.raises(UnsupportedError) as caught:
        profiled(load("vector_add"), {}, "nvidia-sm86")
    assert caught.value.code == "TFW0666"


def test_streaming_is_limited_by_memory_and_by_what_memory_can_move() -> None:
    profile = profiled(load("vector_add"), {"n": str(1 << 20)}, TARGET, workgroups=64)
    assert profile.limits[0].cause == "DRAM"
    memory = profile.roofline[-1]
    assert memory.nbytes == pytest.approx(3 * 4 * (1 << 20), rel=0.02)
    assert 0.6 * memory.attainable < memory.achieved < memory.attainable


def test_more_stages_hide_what_one_stage_waits_for() -> None:
    shape = {"m": "256", "n": "256", "k": "256"}
    one, three = (profiled(load("matmul"), {**shape, "num_stages": str(stages)}, TARGET) for stages in (1, 3))
    assert three.seconds < 0.9 * one.seconds


def test_machine_code_is_profiled_as_the_kernel_that_it_was_made_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, launch = tmp_path / "vector_add.ptx", tmp_path / "launch.yaml"
    assert main(["compile", "vector_add", "--target", TARGET, "--emit", "asm", "-o", str(code)]) == 0
    arrays = "".join(f"  - {{out: {name}, shape: [5000], dtype: float32, fill: 1}}\n" for name in "xyo")
    launch.write_text(f"grid: [5, 1, 1]\nargs:\n{arrays}  - {{value: 5000, dtype: i32}}\n")
    capsys.readouterr()
    assert main(["profile", str(code), "--target", TARGET, "--launch", str(launch), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["profiles"][0]
    ours = profiled(load("vector_add"), {}, TARGET)
    assert found["cycles"] == pytest.approx(ours.cycles, rel=0.05)
    assert sum(limit["cycles"] for limit in found["limits"]) == pytest.approx(found["cycles"])


def test_a_profile_names_the_source_lines_where_waves_wait() -> None:
    profile = profile_of(recorded(load("matmul"), {"m": "128", "n": "128", "k": "128"}, TARGET))
    texts = {row.text for row in profile.lines[:4]}
    assert any("tl.load" in text or "tl.dot" in text for text in texts)
    assert sum(row.stalled for row in profile.lines) == pytest.approx(sum(row.stalled for row in profile.stalls))


def test_a_launch_whose_workgroups_differ_takes_as_long_as_the_slowest() -> None:
    shape = {"heads": "2", "kv_heads": "2", "queries": "128", "keys": "128", "block_m": "32", "block_n": "32"}
    causal, whole = (profiled(load("attention"), {**shape, "causal": str(causal)}, TARGET) for causal in (True, False))
    assert causal.cycles > 0.8 * whole.cycles, "the last rows see all keys, the first ones a quarter"
    assert any(note.startswith("workgroups differ") for note in causal.notes)
