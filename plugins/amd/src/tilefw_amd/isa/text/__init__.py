"""Text of instructions, as LLVM reads and prints it."""
