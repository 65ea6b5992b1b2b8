"""The collector is off while it is paused, and afterwards as it was before."""

from __future__ import annotations

import gc

import pytest

from tilefw.api.garbage_collection import paused


def test_no_collection_inside():
    with paused():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_an_error_switches_it_on_again():
    with pytest.raises(ValueError), paused():
        raise ValueError
    assert gc.isenabled()


def test_it_stays_off_where_the_caller_had_it_off():
    gc.disable()
    try:
        with paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
