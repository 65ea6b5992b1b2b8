"""The simulator kit: decoded programs executed in lock step over NumPy arrays, with checks. See docs/architecture.md."""
