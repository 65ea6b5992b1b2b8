"""A rule about one file becomes one test of all files, which tells every file that breaks it: thousands of tests cost minutes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from tree import shown


def every_file(paths: Iterable[Path]) -> Callable[[Callable[[Path], None]], Callable[[], None]]:
    """Of a function that asserts something of a path: a test without parameters, under its name."""

    def of(rule: Callable[[Path], None]) -> Callable[[], None]:
        def test() -> None:
            broken = {shown(path): said for path in paths if (said := _broken(rule, path)) is not None}
            assert not broken, "\n".join(f"{path}: {said}" for path, said in broken.items())

        test.__name__, test.__doc__ = rule.__name__, rule.__doc__
        return test

    return of


def _broken(rule: Callable[[Path], None], path: Path) -> str | None:
    try:
        rule(path)
    except AssertionError as error:
        return str(error)
    return None
