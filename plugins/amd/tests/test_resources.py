"""What a kernel takes of the chip: occupancy by LLVM's own figures, spills with a note, and refusals that say what to change."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from served import CHIPS

import tilefw
import tilefw.language as tl
from cdna3.llc import tools
from tilefw.api import Artifact, CapacityError
from tilefw.kernels import spec
from tilefw.kernels.reference import typed
from tilefw.runtime.compilation import compiler, kernel_source, options
from tilefw.runtime.jit import specialize
from tilefw.runtime.plugins import loader
from tilefw_amd.chips import Chip
from tilefw_amd.chips.occupancy import occupancy, reachable, steps, waves_per_simd
from tilefw_amd.machine import spill
from tilefw_amd.machine.spill import model

on_each_chip = pytest.mark.parametrize("chip", CHIPS, ids=str)
TARGET = "amd-cdna3"


@on_each_chip
@pytest.mark.parametrize(
    ("registers", "waves"),
    [(1, 8), (64, 8), (65, 7), (72, 7), (73, 6), (128, 4), (130, 3), (168, 3), (169, 2), (256, 2), (257, 1), (512, 1)],
)
def test_waves_of_a_simd_are_those_of_llvm(chip: Chip, registers: int, waves: int) -> None:
    """`Occupancy:` of llc's listings."""
    assert waves_per_simd(chip, registers) == waves


@on_each_chip
@pytest.mark.parametrize(
    ("threads", "registers", "expected"),
    [(256, 64, 1.0), (256, 130, 12 / 32), (1024, 128, 16 / 32), (64, 8, 1.0), (128, 8, 1.0), (512, 513, 0.0)],
)
def test_occupancy_by_registers(chip: Chip, threads: int, registers: int, expected: float) -> None:
    assert occupancy(chip, threads, registers, 0) == expected


# Bytes of LDS and how many workgroups of 256 threads have room at once: in blocks of 512 bytes of 64 KiB, of 1280 of 160 KiB.
ROOM = {
    "gfx942": {16384: 4, 16385: 3, 32768: 2, 65536: 1, 65537: 0},
    "gfx950": {16640: 8, 32000: 5, 32768: 4, 40960: 4, 40961: 3, 65536: 2, 81920: 2, 81921: 1, 163840: 1, 163841: 0},
}


@on_each_chip
def test_occupancy_by_lds(chip: Chip) -> None:
    found = {size: occupancy(chip, 256, 64, size) * 8 for size in ROOM[chip.name]}
    assert found == ROOM[chip.name]


_LLC, _ = tools()
_HOLDS_LDS = """
@lds{size} = internal addrspace(3) global [{size} x i8] poison, align 16
define amdgpu_kernel void @k{size}(i32 %i) #0 {{
  %place = getelementptr i8, ptr addrspace(3) @lds{size}, i32 %i
  store volatile i8 1, ptr addrspace(3) %place
  ret void
}}
"""


@on_each_chip
@pytest.mark.parametrize("threads", [64, 256, 512])
@pytest.mark.parametrize("shared", [0, 4096, 16384, 32768, 65536])
def test_fewer_registers_are_worth_it_up_to_what_lds_has_room_for(chip: Chip, threads: int, shared: int) -> None:
    """One step is reached by each occupancy that LDS allows, none beyond."""
    of = steps(chip)["v"]
    worth = reachable(chip, threads, shared)["v"]
    most = occupancy(chip, threads, of[0], shared)
    assert worth == of[len(of) - len(worth) :]
    assert occupancy(chip, threads, worth[0], shared) == most
    if not shared:
        assert worth == of


@on_each_chip
@pytest.mark.skipif(_LLC is None, reason="no llc-22 (apt-get install llvm-22)")
def test_occupancy_by_lds_is_that_of_llc(chip: Chip) -> None:
    """Around each size up to which one workgroup more has room. llc divides by the bytes that it is told, so that it is asked for
    whole granules, which are what the chip gives out."""
    whole, granule = chip.limits["shared_bytes"], chip.shared_granule
    edges = {whole // count // granule * granule for count in range(1, 9)} | {granule, 2 * granule}
    sizes = sorted(size for edge in edges for size in (edge, edge + granule) if size <= whole)
    module = 'target triple = "amdgcn-amd-amdhsa"\n' + "".join(_HOLDS_LDS.format(size=size) for size in dict.fromkeys(sizes))
    module += 'attributes #0 = { "amdgpu-flat-work-group-size"="256,256" }\n'
    command = [str(_LLC), f"-mcpu={chip.name}", "-o", "-"]
    printed = subprocess.run(command, input=module, capture_output=True, text=True, check=True).stdout
    theirs = dict(zip(dict.fromkeys(sizes), map(int, re.findall(r"^; Occupancy: (\d+)", printed, re.MULTILINE)), strict=True))
    for size, waves in theirs.items():
        for less in (0, 1, granule - 1):
            assert occupancy(chip, 256, 64, size - less) * 8 == waves, (size, less)


def compiled(name: str, parameters: dict[str, object], target_name: str = TARGET, **keywords: object) -> Artifact:
    chosen, target = spec.load(name), loader.find_target(target_name)
    launch = chosen.prepare(chosen.resolve(parameters), np.random.default_rng(0))
    given = {**{key: typed(value) for key, value in launch.arguments.items()}, **launch.constexprs}
    signature, constexprs, _ = specialize(chosen.kernel, {p.name: given[p.name] for p in chosen.kernel.params})
    request = options.resolve({**launch.keywords, **keywords}, target.info, facts=("under_2_gib",))
    source = kernel_source.from_jit(chosen.kernel, signature, constexprs)
    return compiler.compile_source(source, target, request, assemble=True).artifact


def test_fewer_registers_spill_and_a_note_says_it() -> None:
    enough, few = compiled("matmul", {}), compiled("matmul", {}, maxnreg=32)
    assert enough.resources.spills == 0 and not enough.remarks
    used = few.resources
    assert used.registers is not None and used.registers["vector"] + used.registers["accumulation"] <= 32
    assert used.spills and used.scratch_bytes
    (remark,) = few.remarks
    assert remark.code == "TFW0652" and f"{used.scratch_bytes} bytes of them in memory" in remark.message


def test_too_few_registers_for_an_instruction_are_refused_at_its_line() -> None:
    with pytest.raises(CapacityError) as caught:
        compiled("matmul", {}, maxnreg=8)
    assert caught.value.code == "TFW0650" and caught.value.place is not None and "matmul.py" in caught.value.place.file
    assert "num_warps" in (caught.value.help or "")
    assert "of which it may use 8 (maxnreg=8)" in caught.value.message


@tilefw.jit
def double(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets) * 2)


def test_a_tile_too_large_for_registers_and_scratch_is_refused_at_once_with_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a chip with less scratch than there is: a tile that is too large for all of it takes half a minute to lower."""
    monkeypatch.setattr(spill, "model", lambda isa: replace(model(isa), memory_bytes=4096))
    with pytest.raises(CapacityError) as caught:
        tilefw.compile(double, TARGET, {"x_ptr": "*fp32", "out_ptr": "*fp32"}, {"BLOCK": 1 << 17}, num_warps=1)
    error = caught.value
    assert error.code == "TFW0650" and error.place is not None and error.place.file == __file__
    assert re.search(r"needs 2\d{3} registers of class 'v' at once, .*; the chip has 256$", error.message)
    assert re.fullmatch(r"\d+ bytes of a lane would wait in memory, where spill code reaches 4096", error.note or "")
    assert "tile of a program smaller" in (error.help or "")


@on_each_chip
def test_too_much_lds_says_how_much_where_from_and_what_to_change(chip: Chip) -> None:
    with pytest.raises(CapacityError) as caught:
        compiled("transpose", {"block_rows": 1024, "block_columns": 512, "num_warps": 16}, chip.target)
    error = caught.value
    assert error.code == "TFW0651"
    needed = f"needs 1048576 bytes of shared memory at once; a workgroup has at most {chip.limits['shared_bytes']}"
    assert needed in error.message
    assert error.note is not None and "transpose.py" in error.note and "smaller tiles" in (error.help or "")


def test_steps_of_a_reduction_of_triples_use_up_what_they_share() -> None:
    """Welford's differences are needed for both means and sums of squares: they do not wait for the last step of one of them."""
    assert compiled("welford", {}).resources.occupancy == 1.0


@tilefw.jit
def powers(out_ptr, rounds, factors, COUNT: tl.constexpr):
    total = 1
    for _ in range(rounds):
        for i in tl.static_range(COUNT):
            total = total * factors[i] + i
    tl.store(out_ptr, total)


def test_scalar_registers_that_do_not_suffice_are_counted_by_themselves() -> None:
    factors = tuple(range(3, 123))
    out = np.zeros(1, np.int32)
    result = powers[(1,)](out, 2, factors, COUNT=len(factors), num_warps=1, target=TARGET, checks="all")
    total = 1
    for _ in range(2):
        for i, factor in enumerate(factors):
            total = (total * factor + i) % 2**32
    assert out.view(np.uint32)[0] == total
    counts = {kind: int(n) for kind, n in re.findall(r"\.([sv])gpr_spill_count: *(\d+)", result.artifact.text)}
    assert counts["s"] > 0 and counts["v"] == 0 and result.artifact.resources.spills == counts["s"]
    assert not result.artifact.remarks  # lanes of a vector register hold them, not memory
