"""Machine code of other compilers for sm_80, and PTX broken on purpose: what the shared `oracles` need to know of PTX."""
