"""A chip must bring the base set; what it lacks is named, before any expansion can chase its own tail."""

from __future__ import annotations

import pytest

from tilefw.api.errors import PluginError
from tilefw.simt.expand.base import BASE_ROWS, NARROW_ROWS, check_rules

WHOLE = BASE_ROWS | NARROW_ROWS


def test_the_base_set_is_enough():
    check_rules("whole", WHOLE)


@pytest.mark.parametrize("row", sorted(WHOLE))
def test_each_missing_row_is_named(row):
    with pytest.raises(PluginError) as caught:
        check_rules("short", WHOLE - {row})
    assert caught.value.code == "TFW0510"
    assert caught.value.message == f"the rules of short lack 1 that the expansions need: {row}"


def test_all_missing_rows_are_named_at_once():
    with pytest.raises(PluginError) as caught:
        check_rules("empty", ())
    assert all(row in caught.value.message for row in WHOLE)
