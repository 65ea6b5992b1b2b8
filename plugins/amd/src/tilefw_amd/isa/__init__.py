"""The instruction set of gfx942: one table of rows, and what is made of it: text, bytes, programs of the simulator."""
