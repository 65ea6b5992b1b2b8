"""Tile IR to tile IR, one pass a file; the default order stands in `pipeline.py`."""
