"""The matrix unit: fragments over registers and lanes, and how sums are rounded."""
