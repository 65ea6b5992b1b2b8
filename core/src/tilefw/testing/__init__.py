"""Shipped for the tests of plugins: random tile programs, chips in NumPy, filecheck in process."""
