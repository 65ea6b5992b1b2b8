"""tilefw backend for the processor at hand: tile programs as loops of LLVM IR, compiled to native code in this process."""
