"""Layouts as linear maps over bits: their algebra, shared memory's swizzles, conversions, matrix atoms. Nothing here makes IR."""

from tilefw.simt.layout.linear import LinearLayout, blocked

__all__ = ["LinearLayout", "blocked"]
