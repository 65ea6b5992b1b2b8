"""The card itself as a device, over the HIP runtime library (`libamdhip64.so`), which ctypes opens: no build step, no ROCm headers.

`interface` is the table of the library's functions, `library` finds and opens it, `driver` calls it, `card` finds a card, says what
a machine lacks for it, and loads code objects.
"""
