"""globaltimer, memrealtime, smid: what the machine knows while a kernel runs."""

from __future__ import annotations

from tilefw.frontend.builder import Builder
from tilefw.frontend.builtins.registry import Meanings
from tilefw.frontend.values import RuntimeValue

meaning = Meanings()


@meaning("globaltimer")
def globaltimer(b: Builder) -> RuntimeValue:
    return b.observe("nanoseconds")


@meaning("memrealtime")
def memrealtime(b: Builder) -> RuntimeValue:
    return b.observe("ticks")


@meaning("smid")
def smid(b: Builder) -> RuntimeValue:
    return b.observe("processor")
