"""Lean machine instructions below the IR: slots classes in lists, their text, liveness, allocation and its checker."""
