"""What the Tarn N1 has beyond the kit's text: products on the matrix unit."""

from __future__ import annotations

from tilefw.api.tile import TextMachine, TextValue, TileProduct, literal
from tilefw_tarn.isa import LANES, MATRIX, MATRIX_TYPES, ROWS, TAGS


class TarnWriter(TextMachine):
    """Writes the body of one program."""

    rows = ROWS
    lanes = LANES
    copy_dims = 2
    copy_tags = TAGS
    matrix_tile = MATRIX
    matrix_types = MATRIX_TYPES

    def multiply(self, product: TileProduct[TextValue]) -> None:
        opcode = f"mma.{product.operand_type}.{product.sums_type}.{'x'.join(map(str, product.sizes))}"
        rows = (product.sums_row, product.left_row, product.right_row)
        self.write(opcode, product.sums, product.left, product.right, *map(literal, rows))
