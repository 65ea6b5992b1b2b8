"""A chip is one page: a copy with other numbers and one instruction less is served by every part, beside its original."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from isa.machine import launch
from lane_kernels import compiled as lanes_compiled
from lane_kernels import kernel as lane_kernel
from row_kernels import compile_text
from test_dots import check, compiled

from tilefw.api import CapacityError, CodeError, LaunchError
from tilefw.simt.layout.atoms import DotTypes
from tilefw_nvidia import chips as pages
from tilefw_nvidia.chips import Chip
from tilefw_nvidia.chips.occupancy import occupancy
from tilefw_nvidia.chips.targets import targets
from tilefw_nvidia.isa import OpcodeError, instruction_set
from tilefw_nvidia.load import artifact
from tilefw_nvidia.ptxas import assemble, find_ptxas
from tilefw_nvidia.select.lanes import description
from tilefw_nvidia.select.matrix import atoms

PAGE, NAME, TARGET = "sm86", "sm_87", "nvidia-scratch"
GONE = "mma.sync.aligned.m16n8k16"
# What the copy has otherwise, as edits of the page's text.
EDITS = (
    ('name="sm_86"', f'name="{NAME}"'), ('target="nvidia-sm86"', f'target="{TARGET}"'),
    ('aliases=("nvidia-a10", "nvidia-rtx3090")', "aliases=()"), ("first_version=(7, 1)", "first_version=(7, 4)"),
    ("shared_bytes=99 << 10,", "shared_bytes=40 << 10,"), ('"f16": 128, "bf16": 128', '"f16": 32, "bf16": 128'),
    ("latencies=ACCEL_SIM,", 'latencies={**ACCEL_SIM, "tensor": 99},\n    registers_per_processor=16384,'),
    ("    processors=72,", f'    removed=frozenset({{"{GONE}"}}),\n    processors=72,'),
)
HALVES = DotTypes("f16", "f16", "f32")
CASTS = """func.func @row(%a: !tile.ptr<f16>, %o: !tile.ptr<f16>) {
  %zero = tile.constant 0 : i32
  %one = tile.constant 1 : i32
  %v = tile.load_block %a at (%zero : i32) strides (%one : i32) : !tile.ptr<f16>, tensor<64xf16>
  tile.store_block %o, %v at (%zero : i32) strides (%one : i32) : !tile.ptr<f16>, tensor<64xf16>
  func.return
}"""


@pytest.fixture
def both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Chip, Chip]]:
    """The chip of the page, and that of the copy, which lies in a folder of its own."""
    text = Path(str(pages.__path__[0]), f"{PAGE}.py").read_text(encoding="utf-8")
    for old, new in EDITS:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (tmp_path / "scratch.py").write_text(text, encoding="utf-8")
    monkeypatch.setattr(pages, "__path__", [*pages.__path__, str(tmp_path)])
    pages.chips.cache_clear()
    yield pages.named("sm_86"), pages.named(NAME)
    pages.chips.cache_clear()
    sys.modules.pop(f"{pages.__name__}.scratch")


def test_the_page_is_a_target(both: tuple[Chip, Chip]) -> None:
    (found,) = (info for info in targets() if info.name == TARGET)
    assert (found.chip, found.limits["shared_bytes"], found.limits["registers_per_processor"]) == (NAME, 40 << 10, 16384)


def latency(chip: Chip) -> int:
    (match,) = instruction_set(chip).lookup("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32")
    return instruction_set(chip).latency(match.form)


def test_description_occupancy_rates_and_latencies_are_the_pages(both: tuple[Chip, Chip]) -> None:
    assert [description(chip).shared_bytes for chip in both] == [99 << 10, 40 << 10]
    assert [occupancy(chip, 128, 64, 0) for chip in both] == [32 / 48, 8 / 48]
    costs = [{(atom.name, atom.cost) for atom in atoms(chip) if "m16n8k8.row.col.f32.f16" in atom.name} for chip in both]
    assert {(name, 4 * cost) for name, cost in costs[0]} == costs[1] != set()
    assert [latency(chip) for chip in both] == [33, 99]


def test_the_compiler_does_without_the_removed_instruction(both: tuple[Chip, Chip]) -> None:
    first, other = (compiled(HALVES, (32, 32, 32), 4, chip) for chip in both)
    assert GONE in first and "m16n8k16" not in other and "mma.sync.aligned.m16n8k8" in other
    assert ".target sm_86" in first and f".target {NAME}" in other
    for chip, text in zip(both, (first, other), strict=True):
        check(HALVES, (32, 32, 32), 4, text, chip)


def test_the_compiler_keeps_to_the_chips_shared_memory(both: tuple[Chip, Chip]) -> None:
    alloc = ('  %b = lane.alloc {id = 0 : i64, bytes = 49152 : i64, align = 16 : i64, label = "b"} : () -> i32\n'
             "  %s = lane.splat %b : i32 to vector<1xi32>\n"
             '  lane.store %s, %t {parts = "address,value", width = 1 : i64, slots = array<i64: 0>, immediates = array<i64: 0>,'
             ' space = "shared", buffer = 0 : i64} : (vector<1xi32>, vector<1xi32>) -> ()\n')
    first, other = both
    assert lanes_compiled(lane_kernel(alloc), first).resources.shared_bytes == 49152
    with pytest.raises(CapacityError, match="a workgroup has at most 40960"):
        lanes_compiled(lane_kernel(alloc), other)


def test_the_simulator_has_the_pages_instructions_and_limits(both: tuple[Chip, Chip]) -> None:
    first, other = both
    text = compiled(HALVES, (32, 32, 32), 4, first)
    assert artifact(text, "k.ptx", first).entries
    with pytest.raises(CodeError, match=f"{NAME} has no {GONE}") as removed:
        artifact(text, "k.ptx", other)
    assert removed.value.code == "TFW0715" and removed.value.place is not None
    with pytest.raises(OpcodeError, match=NAME):
        instruction_set(other).lookup(f"{GONE}.row.col.f32.f16.f16.f32")
    large = ".version 7.4\n.target sm_80\n.address_size 64\n.visible .entry k() { .shared .b8 s[49000]; ret; }\n"
    assert launch(large, [], 1, 32, first)[1] == ()
    with pytest.raises(LaunchError, match="shared memory"):
        launch(large, [], 1, 32, other)


def test_code_of_the_copy_runs_on_no_older_chip(both: tuple[Chip, Chip]) -> None:
    first, other = both
    text = compile_text(CASTS, other).text
    with pytest.raises(CodeError, match=f"{NAME}, which sm_86 does not run"):
        artifact(text, "k.ptx", first)
    older = compile_text(CASTS, first).text
    data = np.arange(64, dtype=np.float16)
    buffers, findings = launch(older.replace("row", "k"), [data, data * 0], 1, 128, other)
    assert findings == () and buffers[1] == data.tobytes()


@pytest.mark.skipif(find_ptxas() is None, reason="ptxas is not installed: pip install tilefw-nvidia[ptxas]")
def test_the_assembler_takes_the_copys_code(both: tuple[Chip, Chip]) -> None:
    made = assemble(compile_text(CASTS, both[1]), both[1], ours=True)
    assert made.binary is not None and made.resources.occupancy == occupancy(both[1], 128, made.resources.registers["row"], 0)
