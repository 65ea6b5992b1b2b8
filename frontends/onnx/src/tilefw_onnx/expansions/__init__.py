"""Operators that are written out as nodes of others when a model is read; their results are fused as those of any nodes."""
