"""Work that could run at the same time reads no array in common: second copies of inputs, and tiles for all planes."""

from __future__ import annotations

from graphs import apply, load, where

from tilefw_spatial.arrange import arrange
from tilefw_spatial.arrange import twins as twins_module
from tilefw_spatial.graph import Axis, Dot, Graph, Store, Value
from tilefw_spatial.machine import load as load_machine
from tilefw_spatial.schedule import schedule
from tilefw_spatial.sweep import MatrixSweep, VectorSweep, Work


def _work(rows: int, columns: int, depth: int) -> Work:
    """Rows times columns of int8, with a bias for each column."""
    m, n, k = Axis("m", rows), Axis("n", columns), Axis("k", depth)
    a, b = load("int8", where(0, (m, depth), (k, 1))), load("int8", where(1, (k, columns), (n, 1)))
    total = apply("s2f", "fp32", Value(Dot(a, b, (k,)), (m, n), "int32"))
    result = apply("addf", "fp32", total, load("fp32", where(2, (n, 1))))
    return arrange(Graph([Store(result, where(3, (m, columns), (n, 1)))]), load_machine())


def _read(work: Work, side: str) -> set[int]:
    """Arrays that the drains of one side read."""
    drains = [sweep for sweep in work.sweeps if isinstance(sweep, VectorSweep) and [d.side for d in sweep.drains] == [side]]
    return {id(read.walk.array) for sweep in drains for read in sweep.reads[len(sweep.drains) :]}


def test_the_drains_of_two_sides_read_different_copies():
    work = _work(640, 256, 320)
    west, east = _read(work, "W"), _read(work, "E")
    assert west and east and not west & east


def test_twins_come_from_the_same_elements():
    work = _work(640, 256, 320)
    by_name = {array.name: array for array in work.arrays}
    twins = [array for array in work.arrays if array.name.endswith("'")]
    assert twins
    for twin in twins:
        assert twin.transfers == by_name[twin.name[:-1]].transfers and twin.role == "in"


def test_an_array_that_is_too_large_has_no_twin(monkeypatch):
    monkeypatch.setattr(twins_module, "MOST", 0)
    assert not [array for array in _work(640, 256, 320).arrays if array.name.endswith("'")]


def test_the_two_sides_are_drained_at_the_same_time(monkeypatch):
    """One product a tile leaves the vector unit as the bottleneck."""
    machine = load_machine("sdm-1")
    with_twins = schedule(_work(3200, 256, 64), machine).cycles
    monkeypatch.setattr(twins_module, "MOST", 0)
    assert with_twins < 0.7 * schedule(_work(3200, 256, 64), machine).cycles


def test_two_tiles_are_four_blocks_of_rows_for_the_four_planes():
    rows = [sweep.rows for sweep in _work(196, 640, 1024).sweeps if isinstance(sweep, MatrixSweep)]
    assert rows == [98] * 4


def test_many_tiles_of_few_rows_stay_whole():
    rows = [sweep.rows for sweep in _work(49, 2240, 512).sweeps if isinstance(sweep, MatrixSweep)]
    assert min(rows) == 49
