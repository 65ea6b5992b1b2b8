"""Triton's own PTX as an oracle for the simulator: kernels, cases, corpus, mutations."""
