"""The node context: the words of 64 bits by which a kernel finds its rank, how many there are, and every rank's symmetric heap.

Each rank has one in its memory: its rank, the number of ranks, then the address of each rank's heap, as Iris's kernels read them. A
kernel that uses `tilefw.language.distributed` has one more parameter, hidden from the user, which points to that of the rank that
runs it. In front of that are words which Iris does not know: behind the heaps' addresses they would be taken for one of a rank
that is none.
"""

from __future__ import annotations

RANK, NUM_RANKS, HEAP_BASES = range(3)  # words; the bases are the last ones, in the order of the ranks
WORD_BYTES = 8
MULTICAST_BASE = -1
"""The word of the address at which the multicast mapping of all heaps begins."""
IN_FRONT = 2  # words, so that the context is as aligned as its memory
HEAP_ALIGNMENT = 256
"""What every heap's address is divisible by: code relies on it, as it moves many bytes at once."""
BARRIER = -1024
"""From each heap's address, in bytes: two words of 64 bits by which one program of each rank meets the others (`tld.barrier()`)."""
PARAMETER = "node.context"  # a user's parameter has no dot
HIDDEN = "node_context"  # what `Parameter.hidden` says
