"""Where an importer makes its ops: at the end of a block, by one builder, and for a while elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from xdsl.ir import Block

from tilefw.frontend.builder import Builder


class BuildingScope:
    """`b` makes the ops. What is made in another scope has the location of what asks for it."""

    def __init__(self, builder: Builder) -> None:
        self.b = builder

    @contextmanager
    def within(self, builder: Builder) -> Iterator[None]:
        """Make ops by another builder for a while."""
        outer, self.b = self.b, builder
        builder.location = outer.location
        try:
            yield
        finally:
            self.b = outer

    @contextmanager
    def inside(self, block: Block) -> Iterator[None]:
        """Make ops at the end of another block for a while."""
        location = self.b.location
        try:
            with self.b.inside(block):
                yield
        finally:
            self.b.location = location
