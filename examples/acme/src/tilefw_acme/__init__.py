"""A backend for the Acme M1, written against `tilefw.api` alone."""
