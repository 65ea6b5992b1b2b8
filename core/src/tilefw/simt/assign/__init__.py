"""Layout assignment: which layout each tile value has, and where it is converted; an analysis that changes nothing."""
