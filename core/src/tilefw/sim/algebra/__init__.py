"""The lane algebra: its primitives, and the forms that execute, follow undefined bits and record."""
