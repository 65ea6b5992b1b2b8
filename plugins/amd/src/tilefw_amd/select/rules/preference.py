"""Several rules of one row in order of preference, for a chip that was made without some instructions of its generation.

Which instructions a rule emits may depend on its operands, so a rule is tried, and the next one takes its place where it needs an
instruction that the chip does not have.
"""

from __future__ import annotations

from tilefw.api import PluginError
from tilefw.api.simt import Code, Element, Rule


def first_served(*listed: Rule | None) -> Rule:
    """The first of the rules whose instructions the chip has; where it has those of none, the first one's error (TFW0512) stays.
    None is no rule."""
    first, *others = (rule for rule in listed if rule is not None)

    def chosen(code: Code, *operands: Element) -> Element:
        try:
            return _tried(first, code, operands)
        except PluginError as error:
            if error.code != "TFW0512":
                raise
            for rule in others:
                try:
                    return _tried(rule, code, operands)
                except PluginError as another:
                    if another.code != "TFW0512":
                        raise
            raise error from None

    return chosen


def _tried(rule: Rule, code: Code, operands: tuple[Element, ...]) -> Element:
    """What the rule gives; where it raises, what it emitted is taken back."""
    block, scope = code.block, code.scopes[-1]
    emitted, numbered = len(block.insts), len(scope)
    try:
        return rule(code, *operands)
    except PluginError:
        del block.insts[emitted:]
        while len(scope) > numbered:  # what was numbered last is what was just taken back
            scope.popitem()
        raise
