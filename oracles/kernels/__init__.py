"""The kernels, in Triton's language; importing a module of this package needs Triton."""
