"""Lane IR to machine code: selection on demand, a chunk of elements at a time, by the chip's rules."""
