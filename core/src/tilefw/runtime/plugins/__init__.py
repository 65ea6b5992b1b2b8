"""Plugins: found by their entry points, loaded when first asked for, and what they register."""
