"""Tile IR: types, number formats, the elementwise table, the dialect, its text, and the reference interpreter."""
