"""How operators of StableHLO become ops of the graph dialect, one kind of operator a file."""
