"""Kernels in the language for groups of graph ops: each kind of group has a module that writes one kernel for it."""
