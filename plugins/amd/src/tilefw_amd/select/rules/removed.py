"""Rules on a chip that was made without some instructions of its generation: one that needs such an instruction gives way.

Which instructions a rule emits may depend on its operands, so it is tried, and core's expansion of the row takes its place.
"""

from __future__ import annotations

from tilefw.api import PluginError
from tilefw.api.simt import Code, Element, Rule


def with_expansion(rule: Rule, expansion: Rule | None) -> Rule:
    """`rule` where the chip has its instructions, else `expansion`; without one the error (TFW0512) stays."""
    if expansion is None:
        return rule

    def either(code: Code, *operands: Element) -> Element:
        block, scope = code.block, code.scopes[-1]
        emitted, numbered = len(block.insts), len(scope)
        try:
            return rule(code, *operands)
        except PluginError as error:
            if error.code != "TFW0512":
                raise
        del block.insts[emitted:]
        while len(scope) > numbered:  # what was numbered last is what was just taken back
            scope.popitem()
        return expansion(code, *operands)

    return either
