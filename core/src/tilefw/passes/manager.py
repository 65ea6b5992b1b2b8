"""Runs passes in order: time, dumps, observers before and after each, verification at the ends or after every pass."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from tilefw.api.errors import IRError
from tilefw.tile.dialect.context import context
from tilefw.tile.text.module import verify


class Observer(Protocol):
    """Sees a module before and after each pass; must not change it."""

    def before_pass(self, target: str, pass_name: str, index: int, module: ModuleOp) -> None: ...

    def after_pass(self, target: str, pass_name: str, index: int, module: ModuleOp, seconds: float) -> None: ...


Dump = Callable[[str, ModuleOp], None]


@dataclass(slots=True)
class PassManager:
    """`passes` over one module after another.

    `dump(pass name, module)` is called after each pass, `timer(pass name, seconds)` too; `verify_each` verifies after
    every pass and names the one that broke the module, `verify_ends` before the first and after the last, where there are any.
    `verified`: nothing has changed the module since others verified it, so that the first is left out.
    """

    passes: Sequence[ModulePass]
    target_name: str = ""
    observers: Sequence[Observer] = ()
    verify_each: bool = False
    dump: Dump | None = None
    timer: Callable[[str, float], None] | None = None
    verify_ends: bool = True
    verified: bool = False
    context: Context = field(default_factory=context)

    def run(self, module: ModuleOp) -> None:
        """Run them. Raises IRError when the module does not verify (TFW0402), or no longer does after a pass (TFW0403)."""
        if self.verify_ends and self.passes and not self.verified:
            verify(module)
        for index, item in enumerate(self.passes):
            self._run_one(index, item, module)
        if self.verify_ends and self.passes and not self.verify_each:
            _verify_after(self.passes[-1].name, module)

    def _run_one(self, index: int, item: ModulePass, module: ModuleOp) -> None:
        for observer in self.observers:
            observer.before_pass(self.target_name, item.name, index, module)
        start = time.perf_counter()
        item.apply(self.context, module)
        seconds = time.perf_counter() - start
        for observer in self.observers:
            observer.after_pass(self.target_name, item.name, index, module, seconds)
        if self.timer is not None:
            self.timer(item.name, seconds)
        if self.dump is not None:
            self.dump(item.name, module)
        if self.verify_each:
            _verify_after(item.name, module)


def _verify_after(name: str, module: ModuleOp) -> None:
    try:
        verify(module)
    except IRError as error:
        raise IRError(f"the module does not verify after {name}: {error.message}", "TFW0403", error.place) from None
