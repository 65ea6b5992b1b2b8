"""Whole models: calls of kernels over named tensors, plans compiled of them for a target, sessions that run a plan on a device."""
