"""Collectives that kernels carry out themselves, over a node's symmetric heap: `index` has them by name, with reference and bounds.

Each file has the kernels of one collective and a function that launches them on all ranks of a node. Words by which ranks meet
or signal are made for each launch.
"""
