"""What happens to shared memory once all accesses are there: placement, then barriers."""
