"""A launch compared with the one that a program was made for: grid, scalars, extents, and which arguments share memory.

All of them are constants of the program. What a program leaves open, as one that was written by hand may, is not checked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

from tilefw.api import Argument, BufferView, DeviceAddress, LaunchError, LaunchOptions, Scalar, Struct
from tilefw_spatial.checked import arguments
from tilefw_spatial.program import BoundParameter, SpatialProgram

OTHER = "TFW0838"
_AGAIN = "compile it for this launch: all of it is part of a spatial program"


def check_launch(program: SpatialProgram, grid: Sequence[int], args: Sequence[Argument], size: Callable[[int], int]) -> None:
    """Raises LaunchError for another launch than the program was made for; `size` gives an allocation's bytes by its handle."""
    launched = (*(int(n) for n in grid), 1, 1)[:3]
    if launched != program.grid:
        raise _other(f"{program.entry} was made for the grid {program.grid}, not {launched}")
    parameters = arguments(program)
    if len(args) != len(parameters):
        raise LaunchError(
            f"{program.entry} takes {len(parameters)} arguments, {len(args)} given", code="TFW0347",
            note="parameters: " + ", ".join(p.name for p in parameters),
        )
    moved = [program.parameters[transfer.parameter] for tensor in program.tensors for transfer in tensor.transfers]
    views: list[tuple[BoundParameter, BufferView]] = []
    for parameter, argument in zip(parameters, args, strict=True):
        if isinstance(argument, Scalar):
            _check_scalar(parameter, argument)
            continue
        if isinstance(argument, Struct):
            raise LaunchError(f"{parameter.name} is a {parameter.kind} and takes no struct", code="TFW0347")
        if isinstance(argument, DeviceAddress):
            raise LaunchError(f"{parameter.name} is memory of a card, which the simulator does not reach", code="TFW0347")
        if not isinstance(argument, BufferView):
            raise LaunchError(f"{parameter.name} is a {parameter.kind} and takes no descriptor of an array", code="TFW0347")
        if parameter.kind != "pointer":
            raise LaunchError(f"{parameter.name} is a scalar and takes no pointer", code="TFW0347")
        if argument.handle:
            _check_extent(parameter, argument, size)
            views.append((parameter, argument))
        elif parameter in moved:
            raise _other(f"the program moves data of {parameter.name}, which is a null pointer")
    for first, second in combinations(views, 2):
        _check_sharing(*first, *second)


def check_threads(program: SpatialProgram, options: LaunchOptions) -> None:
    """Raises LaunchError for a workgroup of threads or shared memory, which the machine has not."""
    if options.block is not None and any(n != 1 for n in options.block):
        said = f"{program.entry} has no threads, and block is {tuple(options.block)}"
        raise LaunchError(said, code=OTHER, help="leave block out")
    if options.dynamic_shared:
        raise LaunchError(
            f"{program.entry} has no shared memory, and dynamic_shared is {options.dynamic_shared}", code=OTHER,
            help="leave dynamic_shared out",
        )


def _check_scalar(parameter: BoundParameter, argument: Scalar) -> None:
    if parameter.kind != "scalar":
        raise LaunchError(f"{parameter.name} is a pointer and takes no scalar", code="TFW0347")
    if not parameter.takes(argument.value):
        raise _other(f"the program was made for {parameter.name} = {parameter.value}, not {argument.value}")


def _check_extent(parameter: BoundParameter, argument: BufferView, size: Callable[[int], int]) -> None:
    behind = size(argument.handle) - argument.offset
    if parameter.nbytes and behind != parameter.nbytes:
        raise _other(f"the program was made for {parameter.nbytes} bytes behind {parameter.name}, not {behind}")


def _check_sharing(one: BoundParameter, first: BufferView, other: BoundParameter, second: BufferView) -> None:
    """Two pointers are as far apart in one memory as they were, or in memory that does not overlap."""
    if one.storage is None or other.storage is None:
        return
    (number, begin), (wanted, end) = one.storage, other.storage
    apart = second.offset - first.offset if first.handle == second.handle else None
    if number == wanted:
        if apart != end - begin:
            found = "in other memory" if apart is None else f"{apart} bytes"
            raise _other(f"the program was made for {other.name} {end - begin} bytes behind {one.name}, not {found}")
    elif apart is not None and -other.nbytes < apart < one.nbytes:
        raise _other(f"the program was made for {one.name} and {other.name} in memory of their own, and they overlap")


def _other(message: str) -> LaunchError:
    return LaunchError(message, code=OTHER, help=_AGAIN)
