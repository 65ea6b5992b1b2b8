"""The stand-in library built once, and a machine with it: a server, the library's path in the environment, no executor left
over."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from served import TARGET

from standin import COMPILER, StandIn, built
from tilefw.api.hardware import Card
from tilefw.runtime.plugins.loader import find_target

VARIABLE = "TILEFW_HIP_LIBRARY"


@pytest.fixture(scope="session")
def library_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if COMPILER is None:
        pytest.skip("there is no C compiler (cc, gcc, clang) to build the stand-in library with")
    return tmp_path_factory.mktemp("standin")


@pytest.fixture
def machine(library_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., StandIn]]:
    """`machine(cards, …)` starts a stand-in (StandIn's parameters) with a library of its own, which nobody has opened."""
    started: list[StandIn] = []
    libraries: list[Path] = []
    fresh = find_target(TARGET.name)
    before = dict(fresh.executors)

    def make(*args: Any, defines: tuple[str, ...] = (), **keywords: Any) -> StandIn:
        made = StandIn(*args, **keywords)
        made.__enter__()
        started.append(made)
        # A copy, since the process keeps a connection for each file that it has opened.
        path = tmp_path / f"libamdhip64-{len(started)}.so"
        path.write_bytes(Path(built(library_folder, *defines)).read_bytes())
        libraries.append(path)
        monkeypatch.setenv(VARIABLE, str(path))
        fresh.executors.clear()
        return made

    monkeypatch.delenv("TILEFW_EXECUTOR", raising=False)
    yield make
    fresh.executors.clear()
    fresh.executors.update(before)
    for library in libraries:
        ctypes.CDLL(str(library)).standinDisconnect()
    for one in reversed(started):
        one.__exit__()


@pytest.fixture
def card(standin: StandIn) -> Card:
    """The card of `standin`, beside the one that launches use."""
    device = find_target(TARGET.name).backend.device()
    assert isinstance(device, Card)
    return device


@pytest.fixture
def standin(machine: Callable[..., StandIn]) -> Iterator[StandIn]:
    """A machine with one card of the plugin's first chip; nothing may break a rule of the runtime."""
    made = machine()
    yield made
    assert made.problems == []
