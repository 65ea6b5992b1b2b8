"""Products of a chip, for outlines of launches: one file of figures each."""
