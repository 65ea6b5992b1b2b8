"""Damaged programs, and that nothing but a result or an error of ours comes of them."""
