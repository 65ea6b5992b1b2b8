"""A node whose ranks are processes, as PyTorch starts them: heaps in shared memory, launches simulated by rank 0's process."""
