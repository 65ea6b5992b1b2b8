"""The chip's part of the machine layer: traits, timing, spills, pseudo-instructions, waits, wait states, and their checkers."""
