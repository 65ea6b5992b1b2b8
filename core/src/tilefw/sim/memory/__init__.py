"""Memory: regions of bytes, atomics, asynchronous copies and a device's buffers."""
