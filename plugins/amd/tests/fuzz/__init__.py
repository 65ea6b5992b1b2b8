"""Damaged files and random bytes through all that reads machine code: a result or a clear error, in bounded time and memory."""
