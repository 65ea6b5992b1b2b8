"""The comparison of the model of time with published timings: every figure counts, every row is on its page."""

import csv
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tilefw.api.timing import ChipFigures, packaged_figures

BENCH = Path(__file__).parents[3] / "bench"
NVIDIA, AMD = "tilefw_nvidia.timing.products", "tilefw_amd.timing.products"
PRODUCTS = ((NVIDIA, "a100_sxm4_80gb", "A100-80GB"), (NVIDIA, "h100_sxm5_80gb", "H100-SXM5"), (NVIDIA, "b200", "B200"),
            (AMD, "mi300x", "MI300X"), (AMD, "mi210", "MI210"))  # fmt: skip
FIELDS = ("id", "chip", "kind", "shape", "dtype", "implementation", "config", "value", "unit", "mark", "source")
TILE = "BLOCK_SIZE_M=128 BLOCK_SIZE_N=128 BLOCK_SIZE_K=64 GROUP_SIZE_M=8 num_warps=4 num_stages=2"
THIN = "BLOCK_SIZE_M=32 BLOCK_SIZE_N=32 BLOCK_SIZE_K=32 GROUP_SIZE_M=8 num_warps=16 num_stages=2"
# Rows of every kind that a figure may count for, without chip, value and source.
ROWS = (
    *((f"x-{kind}", "gemm", "M=8192 N=8192 K=4096", kind, "library", "", "ms", "class") for kind in ("fp16", "fp8", "int8",
    "tf32")), ("x-tile", "gemm", "M=4096 N=4096 K=512", "fp16", "Triton", TILE, "us", "exact"),
    ("x-few", "gemm", "M=128 N=128 K=8192", "fp16", "Triton", TILE, "us", "exact"),
    ("x-wide", "gemm", "M=8192 N=8192 K=128", "fp16", "Triton", TILE.replace("_K=64", "_K=16"), "us", "exact"),
    ("x-thin", "gemm", "M=2048 N=2048 K=4096", "fp16", "Triton", THIN, "us", "exact"),
    ("x-fp32", "gemm", "M=4096 N=4096 K=4096", "fp32 (no TF32)", "library", "", "ms", "class"),
    ("x-graph", "gemm", "M=256 N=256 K=256", "fp16", "Triton", f"{TILE} CUDA graph", "us", "exact"),
    *((f"x-a{size}", "attention fwd", f"B=4 H=32 S=4096 D={size}", "fp16", "Triton", "", "ms", "exact") for size in (64, 128, 256)),
    ("x-add", "elementwise add", "N=16777216", "fp32", "Triton", "", "GB/s", "exact"),
    ("x-warm", "elementwise add", "N=1048576", "fp32", "Triton", "CUDA graph", "us", "exact"),
    ("x-little", "elementwise add", "N=4096", "fp32", "Triton", "", "us", "exact"),
    *((f"rzlat-{kib}", "microbenchmark latency", f"pointer chase, working set {kib} KiB", "int64", "chase", "", "cycles", "micro")
      for kib in (8, 3000, 7000, 16000, 500000)),
    ("rzl1-1", "microbenchmark bandwidth", "all SM/CU read same buffer of 900 kB", "fp64", "cache", "", "GB/s", "micro"),
    ("rzl1-2", "microbenchmark bandwidth", "all SM/CU read same buffer of 100000 kB", "fp64", "cache", "", "GB/s", "micro"),
    ("rzsd-1", "microbenchmark throughput", "L1 load float stride 1", "fp32", "strides", "", "B/cycle/SM", "micro"),
    ("isa-1", "microbenchmark throughput", "v_mfma_f64_16x16x4_f64", "f64", "MFMA", "", "cycles", "micro"),
    ("isa-2", "microbenchmark throughput", "v_mfma_f32_32x32x4_xf32", "xf32", "MFMA", "", "cycles", "micro"),
    ("rzst-1", "copy", "scale streaming, block=128", "fp64", "stream", "", "GB/s", "micro"),
)  # fmt: skip


def points(chip: str, path: Path) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(FIELDS)
        writer.writerows((*row[:1], chip, *row[1:6], 1.0, *row[6:], "made up") for row in ROWS)
    return path


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(BENCH)
    yield
    for name in [name for name in sys.modules if name == "model" or name.startswith("model_")]:
        sys.modules.pop(name)


@pytest.mark.parametrize(("package", "name", "chip"), PRODUCTS)
def test_every_figure_of_a_product_changes_some_prediction(
    scripts: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, package: str, name: str, chip: str
) -> None:
    model, model_rows = (importlib.import_module(module) for module in ("model", "model_rows"))
    rows = model_rows.read_rows(points(chip, tmp_path / "points.csv"))
    plain = packaged_figures(package, name, name)

    def predicted(figures: ChipFigures) -> list[float | None]:
        monkeypatch.setattr(model_rows, "_figures", lambda *_: figures)
        return [model.judged(row).predicted for row in rows]

    usual = predicted(plain)
    dead = {one for one in plain if all(predicted(plain.scaled(one, factor)) == usual for factor in (2, 0.5))}
    assert dead == set()


def test_more_work_is_not_faster_and_none_has_a_reason(scripts: None) -> None:
    model, model_rows = (importlib.import_module(module) for module in ("model", "model_rows"))

    def judged(row: tuple[str, ...], shape: str) -> tuple[float, str]:
        numbers = model_rows.named_numbers(f"{shape} {row[5]}")
        made = model_rows.Row(row[0], "H100", row[1], shape, *row[3:6], 1.0, row[6], row[7], numbers)
        one = model.judged(made)
        return one.predicted or 0.0, one.reason

    add = ("tis-1", "elementwise add", "", "fp32", "Triton tutorial 01", "do_bench", "us", "exact")
    product = ("tis-2", "gemm", "", "fp16", "cuBLAS", "do_bench", "us", "class")
    attention = ("fbt-1", "attention fwd", "", "bf16", "TLX FA", "tritonbench", "us", "exact")
    for row, shapes in (
        (add, ("N=2^20", "N=2^24", "N=2^28")),
        (product, ("M=512 N=512 K=512", "M=1024 N=512 K=512", "M=1024 N=1024 K=4096")),
        (attention, ("B=1 H=8 S=1024 D=128", "B=1 H=8 S=4096 D=128", "B=4 H=8 S=4096 D=128")),
    ):
        times = [judged(row, shape)[0] for shape in shapes]
        assert times == sorted(times) and times[-1] > 1.5 * times[0] > 0
    assert judged(product, "M=512 N=0 K=512") == (0.0, "the row says N=0, where a kernel needs at least 1")


def test_rows_that_time_the_host_have_no_prediction(scripts: None) -> None:
    """What the source says of the host's time is no prediction of the chip's."""
    model, model_rows = (importlib.import_module(module) for module in ("model", "model_rows"))
    remark = "sizes < ~3000 are host-launch bound (constant ~55-60 us); use >= 3072"

    def judged(chip: str, size: int, kernel: str, config: str) -> tuple[bool, str]:
        shape = f"M={size} N={size} K={size}"
        row = model_rows.Row(
            "x-1", chip, "gemm", shape, "fp16", kernel, config, 1.0, "us", "exact", model_rows.named_numbers(shape)
        )
        one = model.judged(row)
        return one.predicted is not None, one.reason

    for chip, kernel, config in (("H100", "Triton tutorial 03", remark), ("MI300X", "TLX gfx942 mm", "")):
        assert judged(chip, 1024, kernel, config) == (False, model_rows.HOST_TIMED)
        assert judged(chip, 4096, kernel, config) == (True, "")


def test_numbers_of_a_row_are_read_whatever_stands_beside_them(scripts: None) -> None:
    numbers = importlib.import_module("model_rows").named_numbers
    assert numbers("torch=2.1.0 M=4096. N=2^31 K=.5 splitK=-1 L=. W=-") == {
        "torch": 2.1, "M": 4096, "N": 2**31, "K": 0.5, "splitK": -1,
    }
    assert numbers("N=10^400") == {"N": float("inf")}


def test_every_row_is_on_the_page_with_its_prediction_or_the_reason(scripts: None, tmp_path: Path) -> None:
    model, model_page, model_rows = (importlib.import_module(module) for module in ("model", "model_page", "model_rows"))
    chips = ("A100-80GB", "a chip of nobody's")
    found = [model.judged(row) for chip in chips for row in model_rows.read_rows(points(chip, tmp_path / "points.csv"))]
    text = model_page.page(found)
    assert all(text.count(f"| {row[0]} |") == 2 for row in ROWS)
    assert sum(one.predicted is None for one in found) >= len(ROWS)
    assert all(one.reason for one in found if one.predicted is None)
