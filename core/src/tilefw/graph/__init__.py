"""Whole models: calls of kernels over named tensors, plans compiled of them for a target, and sessions that run a plan on a device."""
