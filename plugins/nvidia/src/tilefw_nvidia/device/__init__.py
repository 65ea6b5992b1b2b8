"""The card itself as a device, over the CUDA driver library (`libcuda.so.1`), which ctypes opens: no build step, no CUDA toolkit.

`interface` is the table of the library's functions, `library` finds and opens it, `driver` calls it, `card` finds a card, says what
a machine lacks for it, and loads PTX.
"""
