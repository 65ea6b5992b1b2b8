"""Spilled values beyond the reach of a scratch access's offset are found by a scalar register; within it none is taken."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from served import CHIP, ISA, instruction

import tilefw
import tilefw.language as tl
from tilefw.api import InternalError
from tilefw.api.machine import MEMORY, WHOLE, Reg, check_allocation, parse_function, snapshot
from tilefw.machine.assign_registers import assign
from tilefw_amd.code_object import elf
from tilefw_amd.machine.spill import SLOT_CLASSES, copied, model, pointer
from tilefw_amd.machine.traits import instructions

_MC = shutil.which("llvm-mc-22")
_FAR = re.compile(r"scratch_(?:store|load)_dword\w* (?:off, )?\S+(?: off,)? s\d+")
V, S = Reg(-1, "v", 256, 1, physical=True), Reg(-1, "s", 128, 1, physical=True)


@tilefw.jit
def double(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets) * 2)  # in place: all is loaded before any is stored


def doubled(size: int) -> Any:
    x = np.arange(size, dtype=np.float32)
    with tilefw.target(CHIP.target, checks="all"):
        result: Any = double[(1,)](x, x, BLOCK=size, num_warps=1)
    assert not result.found and (x == 2 * np.arange(size)).all()
    return result.artifact


def test_a_frame_of_more_than_an_offset_reaches_gives_back_what_went_there_and_is_llvms_code(tmp_path: Path) -> None:
    large = doubled(1 << 17)
    assert 4096 < large.resources.scratch_bytes < 8192 and _FAR.search(large.text)
    if _MC is None:
        pytest.skip("llvm-mc-22 is not installed")
    made = tmp_path / "made.o"
    command = [_MC, "-triple=amdgcn-amd-amdhsa", f"-mcpu={CHIP.name}", "-filetype=obj", "-o", str(made)]
    subprocess.run(command, input=large.text, text=True, check=True)
    ours, theirs = ({s.name: s.data for s in elf.Elf(data, "").sections}[".text"] for data in (large.binary, made.read_bytes()))
    assert ours == theirs


def test_an_ordinary_frame_takes_no_register_for_addresses() -> None:
    ordinary = doubled(1 << 16)
    assert 0 < ordinary.resources.scratch_bytes <= 4096 and "scratch_load" in ordinary.text and not _FAR.search(ordinary.text)


@pytest.mark.parametrize(("count", "at"), [(1, 4096), (2, 4092), (7, 8184), (16, 131072 - 64)])
def test_what_goes_far_comes_back(count: int, at: int) -> None:
    home = SLOT_CLASSES["v"][-1]
    value, base = V.slice(8, count), S.slice(5, 1)
    found = []
    for insts in (home.store(value, base, at), home.load(value, base, at)):
        (page,) = (inst.uses[0] for inst in insts if inst.opcode == "s_mov_b32")
        assert isinstance(page, int)
        for inst in insts:
            instruction(inst)  # there is an encoding
        accesses = [inst for inst in insts if inst.opcode != "s_mov_b32"]
        assert {pointer(inst) for inst in accesses} == {base}
        moved = [pair for inst in accesses for pair in copied(inst) or ()]
        found.append({(place, number + page) for pair in moved for place, number, _ in pair if place == MEMORY})
        registers = [location for pair in moved for location in pair if location[0] != MEMORY]
        assert registers == [("v", 8 + i, WHOLE) for i in range(count)]
    assert found == [{(MEMORY, at + 4 * i) for i in range(count)}] * 2


def waiting(count: int) -> str:
    """A function in which `count` values are live at once."""
    made = "\n".join(f"  %{i} = v_add_f32 {i % 64}, %{count}" for i in range(count))
    read = "\n".join(f"  global_store_dword %{count + 1}, %{i}, \"off\"" for i in range(count))
    head = f'func @f target "{CHIP.target}"\n  regs v: 0-{count}\n  regs v x2 a2: {count + 1}\nentry:\n'
    return f"{head}{made}\n{read}\n  s_endpgm\n"


def test_the_checker_finds_a_wrong_address_and_one_that_nothing_makes() -> None:
    table, spills = instructions(ISA), model(ISA)
    function = parse_function(waiting(1100))
    before = snapshot(function)
    assign(function, table, {"v": 16, "a": 0}, spills)
    (block,) = function.blocks
    far = [inst for inst in block.insts if inst.opcode == "s_mov_b32"]
    assert far and {inst.uses for inst in far} == {(4096,)}
    far[0].uses = (6144,)
    with pytest.raises(InternalError, match="does not hold"):
        check_allocation(before, function, table, spills)
    block.insts.remove(far[0])
    with pytest.raises(InternalError, match="holds no constant"):
        check_allocation(before, function, table, spills)
