"""Compiling: sources, options, the passes run with observers, and the two caches."""
