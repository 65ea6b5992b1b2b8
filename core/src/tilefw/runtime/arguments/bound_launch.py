"""What a target that compiles for one launch is told of it: by a launch's own arguments, or by a caller ahead of time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilefw.api.device import Scalar
from tilefw.api.dtypes import DTYPES, dtype
from tilefw.api.errors import CompileError, LaunchError
from tilefw.api.launch import BufferPlacement, LaunchArguments
from tilefw.api.target import BOUND_FACTS, TargetInfo
from tilefw.runtime.arguments.arrays import array_argument, is_array, storages
from tilefw.runtime.arguments.binding import grid_of, scalar


def launch_of(info: TargetInfo, values: Mapping[str, Any], grid: tuple[int, int, int]) -> LaunchArguments | None:
    """What a target that compiles for one launch wants to know of it; None for any other target.

    Arguments that are None are constants of the code already."""
    if not info.wants & BOUND_FACTS:
        return None
    arrays = [(name, array_argument(value)) for name, value in values.items() if is_array(value)]
    stores = storages(arrays)
    buffers = {}
    for name, array in arrays:
        number = next(n for n, store in enumerate(stores) if store.holds(array))
        buffers[name] = BufferPlacement(number, array.address - stores[number].start, stores[number].nbytes)
    scalars = {name: _python_number(value) for name, value in values.items() if value is not None and name not in buffers}
    return LaunchArguments(grid, scalars, buffers)


def _python_number(value: Any) -> int | float:
    """A scalar argument, which may be typed (`np.float32(2)`, `Scalar`), as a Python number."""
    plain = value.value if isinstance(value, Scalar) else value
    item = getattr(plain, "item", None)
    return plain if item is None else item()


def stated_launch(
    info: TargetInfo, signature: Mapping[str, str], grid: Any, scalars: Mapping[str, int | float], extents: Mapping[str, int]
) -> LaunchArguments | None:
    """The launch that a caller states ahead of time, for a target that wants to know it; every pointer has a storage of its own."""
    if not info.wants & BOUND_FACTS:
        return None
    numbers = [name for name, kind in signature.items() if not kind.startswith("*") and not kind.endswith(":1")]
    pointers = [name for name, kind in signature.items() if kind.startswith("*")]
    lacking = [f"scalars[{name!r}]" for name in numbers if name not in scalars]
    lacking += [f"extents[{name!r}]" for name in pointers if name not in extents]
    if grid is None or lacking:
        raise CompileError(
            f"{info.name} compiles for one launch, and the launch is missing", code="TFW0642",
            note=f"it lacks {', '.join([*(['grid'] if grid is None else []), *lacking])}",
            help="compile(…, grid=(5,), scalars={'n': 5000}, extents={'x_ptr': 20000}): extents are bytes behind the pointers",
        )
    buffers = {name: BufferPlacement(number, 0, _stated_extent(name, extents[name])) for number, name in enumerate(pointers)}
    return LaunchArguments(grid_of(grid), {name: _stated_scalar(name, signature[name], scalars[name]) for name in numbers}, buffers)


def _stated_extent(name: str, value: Any) -> int:
    nbytes = int(scalar(f"extents[{name!r}]", value, DTYPES["int64"]))
    if nbytes < 0:
        raise LaunchError(f"extents[{name!r}] is a number of bytes, not {nbytes}", code="TFW0325")
    return nbytes


def _stated_scalar(name: str, kind: str, value: Any) -> int | float:
    """A scalar as a parameter of that type holds it. Raises LaunchError TFW0324, TFW0325; the front end tells what is not a
    type."""
    try:
        plain = dtype(kind.partition(":")[0])
    except KeyError:
        return value
    return scalar(f"scalars[{name!r}]", value, plain)
