"""A tilefw backend for the Rook R1, a made-up RISC chip with lanes, written against `tilefw.api` alone."""
