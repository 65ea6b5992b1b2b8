"""Machine code of other compilers for AMD's chips, and code broken on purpose: what the shared `oracles` need to know of it."""
