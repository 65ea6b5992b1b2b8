"""Litmus tests of order and scope as kernels in the language: which outcomes no target may show, and which programs are wrong."""
