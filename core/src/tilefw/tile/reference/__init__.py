"""The reference interpreter: the values of a kernel's results with their error bounds, and findings about its accesses."""
