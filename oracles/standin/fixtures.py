"""What fixtures of machines with a stand-in share: a server, a library of its own that nobody has opened, no executor left over."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from oracles.standin.build import COMPILER
from oracles.standin.server import StandIn
from tilefw.runtime.plugins.loader import find_target

Started = TypeVar("Started", bound=StandIn)


def folder_of_libraries(factory: pytest.TempPathFactory) -> Path:
    """Where libraries are built, once a session; a test is skipped where no compiler is."""
    if COMPILER is None:
        pytest.skip("there is no C compiler (cc, gcc, clang) to build the stand-in library with")
    return factory.mktemp("standin")


def machines(
    started: Callable[..., Started], library: Callable[..., str], variable: str, target: str, folder: Path, own: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Callable[..., Started]]:
    """Gives `machine(cards, …)`, which starts a stand-in with `library` in the environment's `variable`; ends all of them."""
    standins: list[StandIn] = []
    libraries: list[Path] = []
    fresh = find_target(target)
    before = dict(fresh.executors)

    def make(*args: Any, defines: tuple[str, ...] = (), **keywords: Any) -> Started:
        made = started(*args, **keywords)
        made.__enter__()
        standins.append(made)
        # A copy, since the process keeps a connection for each file that it has opened.
        path = own / f"library-{len(standins)}.so"
        path.write_bytes(Path(library(folder, *defines)).read_bytes())
        libraries.append(path)
        monkeypatch.setenv(variable, str(path))
        fresh.executors.clear()
        return made

    monkeypatch.delenv("TILEFW_EXECUTOR", raising=False)
    yield make
    fresh.executors.clear()
    fresh.executors.update(before)
    for one in libraries:
        ctypes.CDLL(str(one)).standinDisconnect()
    for one in reversed(standins):
        one.__exit__()
