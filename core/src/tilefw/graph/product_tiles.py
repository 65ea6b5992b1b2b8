"""Which tile of a product of matrices a program computes: by the product's extents, and by what the target says of itself.

A target may say `product_rows`, `product_columns` and `product_depth` among its limits: the largest tile that suits it. Where
registers hold the sums, that is a small one; a processor with tiles in its caches reads and packs its factors less often with a
larger one, as long as both sides of the product fill it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tilefw.api.integers import ceil_div

_USUAL = 64  # rows, columns and summed elements of a tile where a target says nothing
_SHORT = 32  # summed elements that no tile is made shorter than for the sake of what lies behind the sum's end


@dataclass(frozen=True, slots=True)
class ProductTile:
    """The constants of a kernel that computes a product by tiles."""

    rows: int
    columns: int
    depth: int

    @property
    def constexprs(self) -> Mapping[str, int]:
        return {"ROWS": self.rows, "COLUMNS": self.columns, "DEPTH": self.depth}

    @property
    def warps(self) -> int:
        """For chips with lanes: so many that each holds 256 sums at most, but no more than 4."""
        return next((warps for warps in (1, 2) if self.rows * self.columns <= 256 * warps), 4)


@dataclass(frozen=True, slots=True)
class ProductExtents:
    """So many products of matrices, each of so many rows and columns. `depth` are the neighbouring elements of one sum."""

    batches: int
    rows: int
    columns: int
    depth: int

    def tile(self, limits: Mapping[str, int]) -> ProductTile:
        """The largest tile that a target's limits let, of powers of two."""
        short = min(self.rows, self.columns) <= _USUAL  # a factor would be packed for few products
        extents, known = (self.rows, self.columns, self.depth), {} if short else limits
        largest = (_power_of_2_within(known.get(f"product_{word}", _USUAL)) for word in ("rows", "columns", "depth"))
        rows, columns, depth = (min(most, _power_of_2(extent)) for most, extent in zip(largest, extents, strict=True))
        while depth > _SHORT and 4 * ceil_div(self.depth, depth) * depth > 5 * self.depth:  # a quarter more than there is
            depth //= 2
        return ProductTile(rows, columns, depth)

    def grid(self, tile: ProductTile) -> tuple[int, int, int]:
        """All programs in one dim: others hold 65,535."""
        return self.batches * ceil_div(self.rows, tile.rows) * ceil_div(self.columns, tile.columns), 1, 1


def _power_of_2(number: int) -> int:
    """The least power of two that is not below a number."""
    return 1 << max(0, number - 1).bit_length()


def _power_of_2_within(number: int) -> int:
    """The greatest power of two that is not above a number, and 1 at least."""
    return 1 << max(1, number).bit_length() - 1
