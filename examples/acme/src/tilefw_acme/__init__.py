"""A tilefw backend for the ACME X1, a made-up chip of sixteen lanes, written against `tilefw.api` alone."""
