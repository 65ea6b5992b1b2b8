"""Shipped for the tests of plugins: random tile programs, a chip in NumPy, a null target, filecheck in process."""
