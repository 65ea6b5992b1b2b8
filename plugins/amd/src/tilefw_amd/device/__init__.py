"""The card itself as a device, over the HIP runtime library (`libamdhip64.so`), which ctypes opens: no build step, no ROCm headers.

`interface` is the table of the library's functions, `library` finds and opens it, `driver` calls it, `card` chooses a card and
loads code objects, `requirements` says what of all this a machine lacks.
"""
