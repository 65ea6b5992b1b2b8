"""Readers of other compilers' IR: each makes tile IR by the builder of our own front end, so that all after it is the same."""
