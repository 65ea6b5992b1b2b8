"""`tilefw.heuristics`: meta-parameters and launch keywords that are computed from a launch's arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from tilefw.api.errors import LaunchError
from tilefw.runtime.arguments.kernel_call import by_position, place_of_variadic


class Heuristics:
    """A kernel whose meta-parameters and launch keywords are computed from its arguments; see `heuristics`."""

    __iter__ = None  # `kernel[grid]` is no sequence: without this Python would ask for grid after grid

    def __init__(self, fn: Any, arg_names: Iterable[str], values: Mapping[str, Callable[[dict[str, Any]], Any]]) -> None:
        self.fn = fn
        self.arg_names = list(arg_names)
        self.values = dict(values)
        self._variadic = place_of_variadic(fn)
        self.__name__: str = fn.__name__
        for name in self.values:
            if name not in self.arg_names and not _is_launch_keyword(name):
                near = get_close_matches(name, self.arg_names, 1)
                raise LaunchError(
                    f"heuristics for `{name}`, which kernel `{self.__name__}` does not have", "TFW0304",
                    help=f"did you mean `{near[0]}`?" if near else None,
                )

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        return functools.partial(self.run, grid=grid)

    def run(self, *args: Any, grid: Any, **keywords: Any) -> Any:
        """Launch with each heuristic's value, computed in order from all arguments given so far."""
        return self.fn.run(*args, grid=grid, **{"warmup": False, **self._completed(args, keywords)})

    def warmup(self, *args: Any, grid: Any, **keywords: Any) -> Any:
        """Compile for such a launch; see JITFunction.warmup."""
        return self.fn.warmup(*args, grid=grid, **self._completed(args, keywords))

    def _completed(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> dict[str, Any]:
        named = by_position(self.arg_names, self._variadic, args)
        for name, heuristic in self.values.items():
            keywords[name] = heuristic({**named, **keywords})
        return keywords


def _is_launch_keyword(name: str) -> bool:
    """Whether launches may have the keyword: on every target, or on one that is installed."""
    from tilefw.runtime.compilation.options import COMPILE_KEYWORDS, HINTS

    if name in COMPILE_KEYWORDS or name in HINTS:
        return True
    from tilefw.runtime.plugins.listings import targets

    return any(name in target.info.options for target in targets())


def heuristics(values: Mapping[str, Callable[[dict[str, Any]], Any]]) -> Callable[[Any], Heuristics]:
    """Compute meta-parameters at each launch: `values` maps a parameter or a launch keyword to a function of the dict of all
    arguments by name."""
    return lambda fn: Heuristics(fn, fn.arg_names, values)
