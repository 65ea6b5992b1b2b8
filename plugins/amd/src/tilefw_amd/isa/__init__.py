"""The instruction set of a chip: one table of rows, and what is made of it: text, bytes, programs of the simulator."""
