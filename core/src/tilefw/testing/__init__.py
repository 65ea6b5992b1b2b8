"""Shipped for the tests of plugins: random tile programs, a chip in NumPy, a null target, a distribution, filecheck in process."""
