"""The default order of tile passes, on one page, with the reason for each."""

from __future__ import annotations

from xdsl.passes import ModulePass

from tilefw.api.launch import LaunchArguments
from tilefw.passes.bind_launch import BindLaunchPass
from tilefw.passes.canonicalize import CanonicalizePass
from tilefw.passes.cse import CsePass
from tilefw.passes.dce import DcePass
from tilefw.passes.expand_dot_scaled import ExpandDotScaledPass, Takes
from tilefw.passes.expand_multicast import ExpandMulticastPass, Served
from tilefw.passes.forward_stores import ForwardStoresPass
from tilefw.passes.licm import LicmPass
from tilefw.passes.lower_bounds import LowerBoundsPass
from tilefw.passes.lower_prints import LowerPrintsPass
from tilefw.passes.scalarize_carried import ScalarizeCarriedPass
from tilefw.passes.structured_access import StructuredAccessPass


def default_passes(
    launch: LaunchArguments | None = None, takes_scaled_dot: Takes | None = None, prints: bool = True,
    serves_multicast: Served | None = None,
) -> list[ModulePass]:
    """From the front end's tile IR to simplified tile IR, the form that backends take; for one `launch` only where it is given.

    `takes_scaled_dot`: which products with scales the backend takes as they are (`Backend.takes_scaled_dot`); none without it.
    `prints`: whether the target serves prints, as stores and atomics; where it does not, they stay, for it to refuse.
    `serves_multicast`: which accesses of all ranks' copies the target has itself; none without it.
    """
    return [
        *([] if launch is None else [BindLaunchPass(launch)]),  # before all that folds
        *([LowerPrintsPass()] if prints else []),  # the records' addresses are then simplified as all others are
        ExpandMulticastPass(serves_multicast),  # before constants fold, and while addresses stand as the author wrote them
        ExpandDotScaledPass(takes_scaled_dot),  # first, so that what it makes is simplified as all else is
        CanonicalizePass(),  # the front end folds little: constants and identities first, so that equal things look equal
        CsePass(),  # each use of `offsets` was expanded anew; one value a meaning is what the access analysis compares
        ScalarizeCarriedPass(),  # loops then carry one scalar, and pointers in the body have a base that can be seen
        StructuredAccessPass(),  # while masks and offsets still stand side by side as the author wrote them
        CanonicalizePass(),  # what the rewrite left: offsets of zero, casts of casts
        LowerBoundsPass(),  # constants and sums are plain to see now
        CsePass(),  # accesses of one block made their scalars each for themselves
        ForwardStoresPass(),  # pointers of one place are one value now
        LicmPass(),  # last but one: uniform address parts leave loops only once they are scalars
        DcePass(),
    ]
