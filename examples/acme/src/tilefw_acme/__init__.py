"""A tilefw backend for the ACME X1 and X2, made-up chips of 16 and 64 lanes, written against `tilefw.api` alone."""
