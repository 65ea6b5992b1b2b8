"""Machine code of other compilers for gfx942, and code broken on purpose: what the shared `oracles` need to know of it."""
