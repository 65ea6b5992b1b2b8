"""Launch data and NumPy expressions of the kernels; nothing here needs Triton."""
