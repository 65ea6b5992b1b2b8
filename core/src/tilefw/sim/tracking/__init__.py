"""What instructions to come must know of a wave's past: events in queues, and their order."""
