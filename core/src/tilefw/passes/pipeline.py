"""The default order of tile passes, on one page, with the reason for each."""

from __future__ import annotations

from xdsl.passes import ModulePass

from tilefw.passes.canonicalize import CanonicalizePass
from tilefw.passes.cse import CsePass
from tilefw.passes.dce import DcePass
from tilefw.passes.licm import LicmPass


def default_passes() -> list[ModulePass]:
    """From the front end's tile IR to simplified tile IR, the form that backends take."""
    return [
        CanonicalizePass(),  # the front end folds little: constants and identities first, so that equal things look equal
        CsePass(),  # each use of `offsets` was expanded anew; one value a meaning is what the access analysis compares
        LicmPass(),  # uniform address parts out of loops, before accesses are rewritten around what stays in them
        DcePass(),
    ]
