"""From selected instructions to finished code: what the machine layer knows of an opcode, and the passes behind assignment."""
