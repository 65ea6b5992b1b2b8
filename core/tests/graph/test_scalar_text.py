"""Casts from and to one bit mean in a kernel what they mean in the table: the lowest bit, and a sign."""

from __future__ import annotations

import numpy as np

from tilefw.graph.builder import ModuleBuilder
from tilefw.graph.compile_graph import compile_graph
from tilefw.graph.emit.model import kernel_graph
from tilefw.graph.meaning import run
from tilefw.graph.session import Session


def test_one_bit_is_the_lowest_and_a_sign():
    b = ModuleBuilder()
    bit = b.map("trunci", b.input("x", "int32", (5,)), to="int1")
    b.output("signed", b.map("exts", bit, to="int32"))
    b.output("unsigned", b.map("extu", bit, to="int32"))
    module, given = b.module(), np.array([0, 1, 2, 3, -2], np.int32)
    wanted = run(module, [given])
    np.testing.assert_array_equal(wanted[0], [0, -1, 0, -1, 0])
    with Session(compile_graph(kernel_graph(module), "reference")) as session:
        found = session.run({"x": given})
    np.testing.assert_array_equal(found["signed"], wanted[0])
    np.testing.assert_array_equal(found["unsigned"], wanted[1])
