"""Tile IR to lane IR: one walk, with a handler for each op."""
