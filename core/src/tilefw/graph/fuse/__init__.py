"""Which graph ops one kernel computes: each module finds groups of one kind and makes `graph.fused` regions of them."""
