"""A whole model on a card: its weights are copied there once, and launches follow each other without copies between them."""

from __future__ import annotations

import numpy as np

from cuda_standin import CudaStandIn
from cuda_standin.kernel import TARGET
from tilefw.graph.certificate import certified
from tilefw.graph.compile_graph import compile_graph
from tilefw.graph.kernel_graph import GraphBuilder
from tilefw.graph.session import Session
from tilefw.kernels.vector_add import vector_add

COUNT = 256


def test_a_session_on_a_card_copies_inputs_and_outputs_alone(standin: CudaStandIn) -> None:
    made = GraphBuilder()
    x, weights = made.input("x", "fp32", (COUNT,)), made.constant("w", np.arange(COUNT, dtype=np.float32), "fp32")
    sums = [made.temporary(f"sum{number}", "fp32", (COUNT,)) for number in range(3)]
    for number, (a, b, out) in enumerate(zip((x, *sums), (weights, weights, x), sums, strict=False)):
        made.call(f"add{number}", vector_add, {"x_ptr": a, "y_ptr": b, "out_ptr": out, "n": COUNT}, (2, 1, 1), {"BLOCK": 128})
    made.output("y", sums[2])
    given = np.full(COUNT, 0.5, np.float32)
    with Session(compile_graph(made.graph(), TARGET, "hw"), executor="hw") as session:
        assert session.executor == "hw"
        before = list(standin.names())
        found = session.run({"x": given})["y"]
        of_the_run = [name for name in standin.names()[len(before) :] if "Memcpy" in name or name == "cuLaunchKernel"]
        certificate = certified(session, {"x": given})
    assert np.array_equal(found, 2 * given + 2 * np.arange(COUNT, dtype=np.float32))
    kinds = ["launch" if name == "cuLaunchKernel" else "in" if "HtoD" in name else "out" for name in of_the_run]
    assert kinds == ["in", "launch", "launch", "launch", "out"]
    assert certificate.ok and len(certificate.launches) == 3
