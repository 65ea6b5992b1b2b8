"""`pytest --tilefw-sanitize=cuda:80`: a suite of Triton's kernels on a simulator, as Triton compiles them, with every check."""

from __future__ import annotations

from typing import Any


def pytest_addoption(parser: Any) -> None:
    parser.getgroup("tilefw").addoption(
        "--tilefw-sanitize", metavar="TARGET", help="run Triton's kernels on this target's simulator: a name, or Triton's cuda:80",
    )


def pytest_configure(config: Any) -> None:
    target = config.getoption("--tilefw-sanitize")
    if target is None:
        return
    import pytest

    from tilefw.api.errors import KernelError
    from tilefw.triton import sanitize

    try:
        sanitize(target)
    except KernelError as error:
        raise pytest.UsageError(str(error)) from None
