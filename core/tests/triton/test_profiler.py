"""A program that profiles itself runs as without: nothing is recorded, and it is told so."""

from __future__ import annotations

from typing import Any

import pytest


def test_sessions_and_scopes_are_taken(installed: None, capsys: pytest.CaptureFixture[str]) -> None:
    import triton.profiler as proton
    import triton.profiler.viewer as proton_viewer

    session = proton.start("matmul", hook="triton")
    proton.deactivate()

    @proton.profile
    @proton.scope("inner", {"flops16": 4.0})
    def twice(x: int) -> int:
        return 2 * x

    with proton.scope("outer", {"bytes": 2}), proton.cpu_timed_scope("host"), proton.metadata_state():
        proton.activate(session)
        assert twice(2) == 4
    proton.finalize()
    proton_viewer.print_tree(*proton_viewer.parse(["time/ms"], "matmul.hatchet"))
    assert capsys.readouterr().err == "profile matmul: nothing is recorded\nno profile: nothing was recorded\n"


def test_the_vendors_matrix_library_is_the_hosts(installed: None) -> None:
    torch: Any = pytest.importorskip("torch")
    from triton._C.libtriton import amd, nvidia

    made: Any = [nvidia.cublas.CublasLt(torch.empty(8)), amd.hipblas.HipblasLt(torch.empty(8))]
    a, b = torch.randn(3, 4).half(), torch.randn(5, 4).half()
    for library in made:
        c, d = torch.empty(3, 5).half(), torch.empty(3, 5).half()
        library.matmul(a, b, c)
        assert torch.equal(c, (a.float() @ b.float().T).half())
        library.gemm(a, b, c, d, 2.0, 1.0)
        assert torch.allclose(d.float(), 3 * c.float(), atol=1e-2)
