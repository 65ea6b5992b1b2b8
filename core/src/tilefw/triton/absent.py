"""Names of other libraries that nothing stands for: they may be imported, annotate and be handed on; a call is refused by name."""

from __future__ import annotations

from types import ModuleType
from typing import Any, NoReturn

from tilefw.api.errors import UnsupportedError


class Absent:
    """A name that is not served, and below it any other. Kernels may name it, and are refused where they call it."""

    # Kernels may read what is marked so; a call then comes here.
    __tilefw_constexpr_function__ = True
    __tilefw_on_host__ = True

    def __init__(self, name: str, why: str | None = None) -> None:
        self.__name__ = name
        self.why = why

    def __getattr__(self, name: str) -> Absent:
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent(f"{self.__name__}.{name}", self.why)

    def __call__(self, *_: Any, **__: Any) -> NoReturn:
        raise UnsupportedError(f"tilefw serves no {self.__name__}", "TFW0103", note=self.why)

    def __repr__(self) -> str:
        return f"<absent {self.__name__}>"


class StandInModule(ModuleType):
    """A module of another library as far as it is served; any other name of it is Absent."""

    def __init__(self, name: str, names: dict[str, Any]) -> None:
        super().__init__(name, f"`{name}`, as tilefw has it.")
        vars(self).update(names)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent(f"{self.__name__}.{name}")
