"""The card itself as a device, over the CUDA driver library (`libcuda.so.1`), which ctypes opens: no build step, no CUDA toolkit.

`interface` is the table of the library's functions, `library` finds and opens it, `driver` calls it, `card` chooses a card and
loads PTX, `requirements` says what of all this a machine lacks.
"""
