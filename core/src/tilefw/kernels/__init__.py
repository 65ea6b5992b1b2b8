"""The kernel library, in tilefw's own language: what `tilefw run NAME` runs and the conformance suite tests.

`index` is the light table of names and parameters; each kernel stands in a module of its name, as `SPEC`.
"""
