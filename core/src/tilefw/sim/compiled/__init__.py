"""Rows of instruction tables in compiled form: what their meanings ask of the lane algebra, printed as LLVM's lines."""
