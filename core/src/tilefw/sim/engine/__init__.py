"""A launch as it runs: batches of workgroups, divergent paths, control flow and barriers."""
