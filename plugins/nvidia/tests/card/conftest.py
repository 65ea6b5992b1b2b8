"""A machine with the stand-in library: a server, the library's path in the environment, no executor left over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cuda_standin import CudaStandIn, built
from cuda_standin.kernel import TARGET
from oracles.standin.fixtures import folder_of_libraries, machines
from tilefw.api.hardware import Card
from tilefw.runtime.plugins.loader import find_target

VARIABLE = "TILEFW_CUDA_LIBRARY"


@pytest.fixture(scope="session")
def library_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder_of_libraries(tmp_path_factory)


@pytest.fixture
def machine(library_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., CudaStandIn]]:
    """`machine(cards, …)` starts a stand-in (CudaStandIn's parameters) with a library of its own."""
    yield from machines(CudaStandIn, built, VARIABLE, TARGET, library_folder, tmp_path, monkeypatch)


@pytest.fixture
def card(standin: CudaStandIn) -> Card:
    """The card of `standin`, beside the one that launches use."""
    device = find_target(TARGET).backend.device()
    assert isinstance(device, Card)
    return device


@pytest.fixture
def standin(machine: Callable[..., CudaStandIn]) -> Iterator[CudaStandIn]:
    """A machine with one card of the plugin's first chip; nothing may break a rule of the driver."""
    made = machine()
    yield made
    assert made.problems == []
