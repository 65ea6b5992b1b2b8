"""Consecutive launches as one program: what one stores and a later one loads stays in the slices and never meets the host."""

from tilefw_spatial.link.align import aligned
from tilefw_spatial.link.chain import compile_chain
from tilefw_spatial.link.compose import LinkedGraph, NotLinked, composed

__all__ = ["LinkedGraph", "NotLinked", "aligned", "compile_chain", "composed"]
