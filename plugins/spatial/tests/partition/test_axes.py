"""A store is divided along what leaves each chip least to do: nothing is won by parts of what every chip must make whole."""

from __future__ import annotations

import pytest
from launches import bound

from tilefw_spatial.elements import on_machine_types
from tilefw_spatial.graph import Reduce
from tilefw_spatial.lower import lower
from tilefw_spatial.partition.axes import divided_axis


@pytest.mark.parametrize(("rows", "columns", "chips"), [(24, 781, 3), (7, 640, 4), (6, 1000, 5)])
def test_rows_are_divided_where_columns_are_reduced(rows: int, columns: int, chips: int) -> None:
    """Columns may divide with less of them left over, but each row's maximum and sum are of all of them."""
    launch = bound("softmax", {"rows": rows, "columns": columns, "programs": rows})
    graph = on_machine_types(lower(launch.module(), launch.launch))
    reduced = {axis for value in graph.values() if isinstance(value.op, Reduce) for axis in value.op.axes}
    for store in graph.stores:
        axis = divided_axis(store, chips)
        assert axis is not None and axis not in reduced
        assert axis.extent == rows
