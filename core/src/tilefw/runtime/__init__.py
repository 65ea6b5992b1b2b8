"""From a kernel to a call: plugin discovery, compilation with its caches, arrays, launches, machine code from files."""
