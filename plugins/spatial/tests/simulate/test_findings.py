"""Each rule of the machine, broken by one instruction, is one finding that names unit and cycle."""

from __future__ import annotations

import numpy as np
import pytest
from hand_made import MACHINE, allocation, kinds, matrix, program, run

from tilefw.api import CodeError, LaunchError, LaunchOptions
from tilefw_spatial.program import HostTensor, QueueInst, SpatialProgram
from tilefw_spatial.simulate.device import simulate

EAST = MACHINE.position("MXM.E")
X = HostTensor("x", "in", allocation("uint8", 8, [("MEM.E0", 0, 0)]), (matrix(0, 8),))


def findings(timed: dict, maps: tuple = (), tensors: tuple = (X,)) -> list[tuple[str, str]]:
    made = program(timed, tensors, [("x", "uint8")], maps)
    return [(f.code, f.message) for f in run(made, np.zeros((8, 320), np.uint8)).findings.all]


def read(time: int, count: int, row: int = 0, stream: int = 0) -> tuple[int, QueueInst]:
    return time, QueueInst("RD", "", count, dst=stream, address=row, step=1)


def test_two_producers_meet_though_nobody_takes_either() -> None:
    """MEM.E3 puts its vector at 108 + 5 where that of MEM.E0 of cycle 105 + 5 comes by."""
    (found,) = findings({"MEM.E0": [read(100, 8)], "MEM.E3": [read(108, 2)]})
    assert found == ("TFW0831", "two producers on stream sE0 at MEM.E3 at cycle 113")


def test_vectors_that_follow_each_other_are_no_conflict() -> None:
    assert findings({"MEM.E0": [read(100, 8)], "MEM.E3": [read(111, 2)]}) == []


def test_a_read_right_behind_a_write_of_its_bank() -> None:
    timed = {"MEM.E0": [read(100, 8)], "MEM.E1": [(104, QueueInst("WR", "", 8, a=0, address=9, step=1)), read(112, 2, 20, 1)]}
    (found,) = findings(timed)
    assert found == ("TFW0832", "bank conflict in MEM.E1, bank 0: read and write of one bank in one cycle at cycle 112")
    timed["MEM.E1"][1] = read(112, 2, 4096 + 20, 1)
    assert findings(timed) == []


def test_what_was_never_written_may_be_read_but_not_stored() -> None:
    timed = {"MEM.E4": [read(100, 2)]}
    assert findings(timed) == []
    timed["MEM.E5"] = [(104, QueueInst("WR", "", 2, a=0, address=0, step=1))]
    (found,) = findings(timed)
    assert found == ("TFW0833", "what was never initialised is stored in MEM.E5 at cycle 106")


def test_a_repetition_that_leaves_its_bank() -> None:
    timed = {"MEM.E0": [(10, QueueInst("RD", "", 1, dst=0, address=4094, step=1)), (11, QueueInst("REP", "", 3, imm=2, step=1))]}
    (found,) = findings(timed)
    assert found == ("TFW0835", "row 4096 of a bank of 4096 in MEM.E0 at cycle 14")


def test_a_stream_flows_one_way() -> None:
    timed = {"MEM.E4": [read(100, 1)], "MEM.E3": [(104, QueueInst("WR", "", 1, a=0, address=0, step=1))]}
    assert findings(timed)[0] == ("TFW0830", "no operand on sE0 at MEM.E3 at cycle 106")


def test_a_result_that_has_left_the_pipe() -> None:
    timed = {
        "VXM.0": [(10, QueueInst("CST", "int32", 1, imm=1, map=kinds(2)))],
        "VXM.1": [
            (18, QueueInst("MOV", "int32", 1, a=1 << 4, map=kinds(1))), (19, QueueInst("MOV", "int32", 1, a=3 << 4, map=kinds(1)))
        ],
    }
    (found,) = findings(timed)
    assert found == ("TFW0830", "no result of VXM.0 from 12 cycles before at VXM.1 at cycle 19")


def test_two_results_of_an_alu_in_one_cycle() -> None:
    timed = {"VXM.0": [
        (10, QueueInst("EX2", "fp32", 1, imm=0, map=kinds(2))), (18, QueueInst("MOV", "fp32", 1, imm=0, map=kinds(2))),
    ]}
    (found,) = findings(timed)
    assert found == ("TFW0831", "two results of VXM.0 in one cycle at cycle 22")


def weights(install: int, multiply: int, reload: int = 0, buffer: int = 0) -> list[tuple[str, str]]:
    """LW at 200 (installed from `install` + 20 on), a MAC of 4 vectors of zeros, and perhaps an LW of `buffer` at `reload`."""
    loads = [200] + ([reload] if reload else [])
    timed: dict = {
        f"MEM.E{i}": [(t - 5 - EAST + MACHINE.position(f"MEM.E{i}"), QueueInst("RD", "", 1, dst=i, address=0)) for t in loads]
        for i in range(16)
    }
    timed["MEM.E20"] = [(multiply - 5 - EAST + MACHINE.position("MEM.E20"), QueueInst("RD", "", 4, dst=16, address=0, step=1))]
    timed["MXM.E0.LW"] = [(200, QueueInst("LW", "int8", 1, a=0)), (install, QueueInst("IW", "int8"))]
    if reload:
        timed["MXM.E0.LW"].append((reload, QueueInst("LW", "int8", 1, a=0, imm=buffer)))
    timed["MXM.E0.MAC"] = [(multiply, QueueInst("MAC", "int8", 4, a=16, address=0, step=1, imm=16))]
    return findings(timed)


def test_weights_are_there_twenty_cycles_after_their_install() -> None:
    assert weights(210, 230) == []
    assert weights(210, 229) == [("TFW0836", "no weights are installed in MXM.E at cycle 229")]


@pytest.mark.parametrize("reload", [231, 233])
def test_weights_may_not_be_replaced_in_use(reload: int) -> None:
    (found,) = weights(210, 230, reload)
    assert found[0] == "TFW0836"
    assert "being overwritten" in found[1]
    assert weights(210, 230, reload, buffer=1) == []


def test_weights_may_be_replaced_after_their_last_use() -> None:
    assert weights(210, 230, 234) == []


def test_a_queue_that_is_never_notified() -> None:
    (found,) = findings({"MEM.E0": [(0, QueueInst("NTFY"))], "MEM.E1": [(40, QueueInst("SYNC"))]})
    assert found == ("TFW0834", "MEM.E1 waits and is never notified at cycle 40")


def test_a_link_takes_a_vector_each_24_cycles() -> None:
    link = next(q for q in MACHINE.queues.values() if q.kind == "C2C" and q.unit == "SXM.E")
    timed = {
        "MEM.E0": [(100, QueueInst("RD", "", 8, dst=0, address=0, step=1))],
        link.name: [(149, QueueInst("SND", a=0)), (150, QueueInst("SND", a=0))],
    }
    (found,) = findings(timed)
    assert found == ("TFW0840", f"link {link.number} takes a vector each 24 cycles at cycle 150")


def test_findings_of_a_check_that_is_off_are_none() -> None:
    timed = {"MEM.E4": [read(100, 1)], "MEM.E5": [(104, QueueInst("WR", "", 1, a=0, address=0, step=1))]}
    done = simulate(program(timed, []), MACHINE, [], LaunchOptions(checks=frozenset({"hazards"})))
    assert not done.findings.all


def test_programs_for_another_machine_or_of_nonsense_are_refused() -> None:
    made = program({"MEM.E0": [read(0, 1)]}, [])
    other = SpatialProgram(made.entry, made.machine, "0" * 64, made.grid, (), (), made.chips, 0)
    with pytest.raises(CodeError, match="another machine"):
        simulate(other, MACHINE, [])
    with pytest.raises(CodeError, match="no stream 64"):
        simulate(program({"MEM.E0": [read(0, 1, stream=64)]}, []), MACHINE, [])
    with pytest.raises(CodeError, match="TFW0837"):
        simulate(program({"MEM.E0": [(0, QueueInst("IFETCH"))]}, []), MACHINE, [])


def test_a_null_pointer_that_holds_data_is_refused() -> None:
    with pytest.raises(LaunchError, match="null"):
        simulate(program({}, [X], [("x", "uint8")]), MACHINE, [None])


def test_an_element_outside_of_its_buffer() -> None:
    made = program({}, [X], [("x", "uint8")])
    (found,) = run(made, np.zeros((7, 320), np.uint8)).findings.all
    assert found.code == "TFW0801"
    assert "element 2240 of a storage of 2240 (320 such)" in found.message


def test_an_output_that_the_program_never_stored() -> None:
    made = program({}, [HostTensor("z", "out", allocation("uint8", 8, [("MEM.E0", 0, 0)]), (matrix(0, 8),))], [("z", "uint8")])
    (found,) = run(made, np.zeros((8, 320), np.uint8)).findings.all
    assert found.code == "TFW0833"


def test_repeated_stores_of_a_stream_are_at_their_cycles() -> None:
    """A store each 3 cycles of a burst of 8 takes vectors 0, 3 and 6."""
    timed = {
        "MEM.E0": [read(100, 8)],
        "MEM.E1": [(104, QueueInst("WR", "", 1, a=0, address=0, step=1)), (105, QueueInst("REP", "", 2, imm=3, step=1))],
    }
    z = HostTensor("z", "out", allocation("uint8", 3, [("MEM.E1", 0, 0)]), (matrix(1, 3),))
    x, out = np.arange(8, dtype=np.uint8)[:, None] + np.zeros((8, 320), np.uint8), np.zeros((3, 320), np.uint8)
    assert not run(program(timed, [X, z], [("x", "uint8"), ("z", "uint8")]), x, out).findings.all
    assert out[:, 0].tolist() == [0, 3, 6]
