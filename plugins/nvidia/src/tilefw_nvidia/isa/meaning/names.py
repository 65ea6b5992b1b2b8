"""What a name in an instruction stands for: a numbered register, a variable or parameter, a label; scope by scope outwards."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tilefw.api.sim import Register, Special
from tilefw_nvidia.isa.text.syntax import PtxFunction, PtxModule, PtxParameter, PtxScope, PtxVariable
from tilefw_nvidia.isa.types import TYPES, Type

_NUMBERED = re.compile(r"(.*?)(0|[1-9]\d*)$")
CARRY = "condition code"


class Names:
    """The names of one function; registers get their numbers as they are met. `specials` are the chip's special registers."""

    def __init__(self, module: PtxModule, function: PtxFunction, specials: Mapping[str, Special]) -> None:
        self.module = module
        self.specials = specials
        self.parameters: dict[str, PtxParameter] = {p.name: p for p in function.parameters}
        self.widths: list[int] = []
        self.spelling: list[str] = []
        self._known: dict[tuple[PtxScope, str], tuple[Register, Type] | None] = {}
        self._numbers: dict[tuple[PtxScope | None, str], Register] = {}

    def register(self, name: str, scope: PtxScope) -> tuple[Register, Type] | None:
        """The register called `name` as seen from `scope`, with its declared type; None when there is none."""
        key = (scope, name)
        if key not in self._known:
            self._known[key] = self._find(name, scope)
        return self._known[key]

    def _find(self, name: str, scope: PtxScope | None) -> tuple[Register, Type] | None:
        numbered = _NUMBERED.match(name)
        while scope is not None:
            kind = scope.registers.get(name)
            if kind is None and numbered is not None:
                count, ranged = scope.counts.get(numbered[1], (0, None))
                # Nobody declares registers beyond a million, so a longer number is not a register.
                if ranged is not None and len(numbered[2]) < 8 and int(numbered[2]) < count:
                    kind = ranged
            if kind is not None:
                return self._numbered(scope, name, kind), kind
            scope = scope.outer
        return None

    def _numbered(self, scope: PtxScope | None, name: str, kind: Type) -> Register:
        register = self._numbers.get((scope, name))
        if register is None:
            register = self._numbers[scope, name] = Register(len(self.widths), kind.bits)
            self.widths.append(kind.bits)
            self.spelling.append(name)
        return register

    def carry(self) -> Register:
        """The condition code's carry flag (PTX ISA, "Extended-Precision Integer Arithmetic Instructions")."""
        return self._numbered(None, CARRY, TYPES["pred"])

    def variable(self, name: str, scope: PtxScope) -> PtxVariable | PtxParameter | None:
        """The variable or parameter called `name` as seen from `scope`."""
        return scope.variable(name) or self.parameters.get(name) or self.module.variables.get(name)
