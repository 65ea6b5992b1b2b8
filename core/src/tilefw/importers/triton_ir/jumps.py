"""Blocks of a region that jump to one another, forward only: where the two ways of a branch meet again."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

from tilefw.api.errors import UnsupportedError
from tilefw.importers.triton_ir.tree import TextBlock, TextOperation
from tilefw.importers.triton_ir.types import CODE


class Jumps:
    """The blocks of a region by label, and the jumps at their ends. Raises UnsupportedError (TFW0406) for a jump backwards."""

    def __init__(self, region: tuple[TextBlock, ...]) -> None:
        self.blocks = {block.label: block for block in region}
        self._passed = self._ways() if len(region) > 1 else {}

    def targets(self, end: TextOperation) -> list[tuple[str, list[str]]]:
        """Where a jump goes: labels, each with the names of the values that its block gets."""
        found: list[tuple[str, list[str]]] = []
        for item in end.items:
            if item.startswith("^"):
                found.append((item, []))
            elif found:
                found[-1][1].append(item)
        return found

    def merge(self, label: str) -> str | None:
        """The first block that every way from `label` goes through; None where ways end before they meet."""
        behind = self._passed[label] - {label}
        return max(behind, key=lambda block: len(self._passed[block]), default=None)

    def _ways(self) -> dict[str, frozenset[str]]:
        """The blocks that every way from a block to the end goes through (it and its post-dominators)."""
        successors = {label: self._successors(block) for label, block in self.blocks.items()}
        try:
            order = list(TopologicalSorter(successors).static_order())  # successors first
        except CycleError:
            raise UnsupportedError(
                "a jump backwards is not imported", CODE, note="loops of Triton's language are `scf.for` and `scf.while`"
            ) from None
        passed: dict[str, frozenset[str]] = {}
        for label in order:
            ways = [passed[after] for after in successors[label]]
            passed[label] = frozenset({label}) | (frozenset.intersection(*ways) if ways else frozenset())
        return passed

    def _successors(self, block: TextBlock) -> list[str]:
        end = block.statements[-1] if block.statements else None
        return [] if end is None or not end.name.startswith("cf.") else [label for label, _ in self.targets(end)]
