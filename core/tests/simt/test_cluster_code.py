"""A chip with clusters: threads and programs are counted through a program's workgroups, and all of them get what one shares."""

from __future__ import annotations

from typing import ClassVar

import pytest
import test_typed_forms as typed
from xdsl.dialects.func import FuncOp

from tilefw.api.errors import PluginError
from tilefw.machine.function_attributes import FunctionAttributes
from tilefw.machine.inst import Function, Slice
from tilefw.machine.table import EFFECT, PURE, InstructionTraits, from_dict
from tilefw.simt.chip import template
from tilefw.simt.chip_requests import LaneAccess
from tilefw.simt.lane import Lane
from tilefw.simt.select.code import Code, Element
from tilefw.simt.select.lane_to_machine import Selector
from tilefw.tile.text.module import parse

PROGRAM = """func.func @f() {
  %s = lane.alloc {id = 0 : i64, bytes = 512 : i64, align = 16 : i64, offset = 0 : i64, label = "s"} : () -> i32
  %a = lane.constant 64 : vector<1xi32>
  %t = lane.thread_id : () -> vector<1xi32>
  %p = lane.program_id 0
  %q = lane.splat %p : i32 to vector<1xi32>
  %v = lane.addi %t, %q : vector<1xi32>
  lane.store %a, %v {parts = "address,value", slots = array<i64: 0>, immediates = array<i64: 0>, width = 1 : i64, buffer = 0 : i64,
                     space = "shared"} : (vector<1xi32>, vector<1xi32>) -> ()
  lane.barrier
  func.return
}"""


class Chip(typed.Chip):
    """Addresses of peers by `peer`, a barrier of the workgroup and one of the cluster."""

    rules: ClassVar = {f"{row}.i32": template(row, "w32") for row in ("addi", "shl", "shru")}
    table = from_dict(
        "toy", {
            "st.shared": InstructionTraits(memory="shared", effects=True), "meet": EFFECT, "meet.all": EFFECT, "arrive": EFFECT,
            **dict.fromkeys(("copy", "arg", "base", "tid", "rank", "program", "peer", "addi", "shl", "shru"), PURE),
        }, typed.CLASSES,
    )

    def thread_id(self, code: Code) -> Element:
        return code.inst("tid", "w32")

    def program_id(self, code: Code, axis: int) -> Element:
        return code.inst("program", "w32", axis)

    def shared_base(self, code: Code) -> Element:
        return code.inst("base", "w32")

    def store(self, code: Code, access: LaneAccess) -> None:
        code.effect("st.shared", (), [access.address, *(self.operand(code, r) for r in access.registers)])

    def barrier(self, code: Code) -> None:
        code.effect("meet")


class ClusterChip(Chip):
    """What a chip with clusters brings besides."""

    def cluster_rank(self, code: Code) -> Element:
        return code.inst("rank", "w32")

    def cluster_barrier(self, code: Code) -> None:
        code.effect("meet.all")

    def arrive_at_peer(self, code: Code, address: Slice, immediate: int, bytes: int | Slice, predicate: Slice | None) -> None:
        code.effect("arrive", (), [address, immediate])

    def peer_address(self, code: Code, address: Slice, rank: int) -> Slice:
        return code.inst("peer", "w32", address, rank)


def _selected(chip: Chip, workgroups: int, program: str = PROGRAM) -> list[str]:
    """The opcodes of the program, in order, and the workgroups whose addresses are asked for."""
    module = parse(program, dialects=[Lane])
    (function,) = (op for op in module.body.block.ops if isinstance(op, FuncOp))
    machine = Function("f", "toy", FunctionAttributes(workgroup=(64, 1, 1), workgroups=workgroups, shared_bytes=512))
    Selector(machine, chip).function(function)
    return [f"peer {inst.uses[1]}" if inst.opcode == "peer" else inst.opcode for inst in machine.insts()]


def test_each_workgroup_of_a_cluster_gets_what_is_stored_to_shared_memory():
    found = _selected(ClusterChip(), 4)
    assert [each for each in found if each.startswith("peer")] == ["peer 0", "peer 1", "peer 2", "peer 3"]
    assert found.count("st.shared") == 4
    # All have begun before a store goes out, the program's own barrier, and none ends before the others.
    assert [each for each in found if each in ("meet", "meet.all", "st.shared")] == [
        "meet.all", *["st.shared"] * 4, "meet.all", "meet.all",
    ]
    assert "rank" in found and "shru" in found


def test_who_arrives_does_so_at_the_barriers_of_all_workgroups():
    arriving = """func.func @f() {
      %s = lane.alloc {id = 0 : i64, bytes = 16 : i64, align = 8 : i64, offset = 0 : i64, label = "s"} : () -> i32
      lane.arrive %s {parts = "address", buffer = 0 : i64} : (i32) -> ()
      func.return
    }"""
    found = _selected(ClusterChip(), 2, arriving)
    assert [each for each in found if each.startswith(("peer", "arrive"))] == ["peer 0", "peer 1", "arrive", "arrive"]


def test_one_workgroup_has_no_word_of_clusters():
    found = _selected(Chip(), 1)
    assert [each for each in found if each in ("meet", "st.shared")] == ["st.shared", "meet"]
    assert not {"rank", "shru", "peer"} & set(found)


def test_a_chip_that_lacks_what_its_clusters_take_is_told():
    with pytest.raises(PluginError, match="cluster_barrier"):
        _selected(Chip(), 2)
