"""Operations that could run at the same time read no array in common: second copies of inputs, and tiles for all planes."""

from __future__ import annotations

from graphs import access_map, apply, load

from tilefw_spatial.arrange import arrange
from tilefw_spatial.arrange import replicas as replicas_module
from tilefw_spatial.graph import Axis, Dot, Graph, Store, Value
from tilefw_spatial.machine import load as load_machine
from tilefw_spatial.schedule import schedule
from tilefw_spatial.stream_program import MatrixStreamOp, StreamProgram, VectorStreamOp


def _program(rows: int, columns: int, depth: int) -> StreamProgram:
    """Rows times columns of int8, with a bias for each column."""
    m, n, k = Axis("m", rows), Axis("n", columns), Axis("k", depth)
    a, b = load("int8", access_map(0, (m, depth), (k, 1))), load("int8", access_map(1, (k, columns), (n, 1)))
    total = apply("s2f", "fp32", Value(Dot(a, b, (k,)), (m, n), "int32"))
    result = apply("addf", "fp32", total, load("fp32", access_map(2, (n, 1))))
    return arrange(Graph([Store(result, access_map(3, (m, columns), (n, 1)))]), load_machine())


def _read(stream_program: StreamProgram, side: str) -> set[int]:
    """Arrays that the drains of one side read."""
    drains = [
        stream_op for stream_op in stream_program.stream_ops
        if isinstance(stream_op, VectorStreamOp) and [d.side for d in stream_op.drains] == [side]
    ]
    return {id(read.pattern.array) for stream_op in drains for read in stream_op.reads[len(stream_op.drains) :]}


def test_the_drains_of_two_sides_read_different_copies():
    stream_program = _program(640, 256, 320)
    west, east = _read(stream_program, "W"), _read(stream_program, "E")
    assert west and east and not west & east


def test_replicas_come_from_the_same_elements():
    stream_program = _program(640, 256, 320)
    by_name = {array.name: array for array in stream_program.arrays}
    replicas = [array for array in stream_program.arrays if array.name.endswith("'")]
    assert replicas
    for replica in replicas:
        assert replica.transfers == by_name[replica.name[:-1]].transfers and replica.role == "in"


def test_an_array_that_is_too_large_has_no_replica(monkeypatch):
    monkeypatch.setattr(replicas_module, "MOST", 0)
    assert not [array for array in _program(640, 256, 320).arrays if array.name.endswith("'")]


def test_the_two_sides_are_drained_at_the_same_time(monkeypatch):
    """One product a tile leaves the vector unit as the bottleneck."""
    machine = load_machine("sdm-1")
    with_replicas = schedule(_program(3200, 256, 64), machine).cycles
    monkeypatch.setattr(replicas_module, "MOST", 0)
    assert with_replicas < 0.7 * schedule(_program(3200, 256, 64), machine).cycles


def test_two_tiles_are_four_blocks_of_rows_for_the_four_planes():
    rows = [stream_op.rows for stream_op in _program(196, 640, 1024).stream_ops if isinstance(stream_op, MatrixStreamOp)]
    assert rows == [98] * 4


def test_many_tiles_of_few_rows_stay_whole():
    rows = [stream_op.rows for stream_op in _program(49, 2240, 512).stream_ops if isinstance(stream_op, MatrixStreamOp)]
    assert min(rows) == 49
