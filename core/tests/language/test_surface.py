"""The surface: every name of Triton's language is served or refused by name, documented, typed, and means something."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import tilefw.language as tl
from tilefw.api.errors import CompileError
from tilefw.language import distributed
from tilefw.language.extra import libdevice

BUILTINS = {name: getattr(tl, name) for name in tl.__all__ if hasattr(getattr(tl, name), "__tilefw_builtin__")}
LIBRARY = {name: value for name, value in vars(libdevice).items() if hasattr(value, "__tilefw_builtin__")}
DISTRIBUTED = {name: value for name, value in vars(distributed).items() if hasattr(value, "__tilefw_builtin__")}
EVERYWHERE = [*BUILTINS.values(), *LIBRARY.values(), *DISTRIBUTED.values()]
# What the front end handles itself, because an argument must not be evaluated or nothing is built.
SPECIAL = {"static_assert", "static_print"}


def by_name(function: Any) -> str:
    """Processes that share the tests must agree on what they are called: no address."""
    return getattr(function, "__tilefw_builtin__", function.__name__)


@pytest.mark.parametrize("function", [*EVERYWHERE, tl.range, tl.static_range, tl.condition], ids=by_name)
def test_functions_have_signature_and_documentation(function: Any) -> None:
    assert inspect.signature(function).parameters is not None
    assert function.__doc__ and len(function.__doc__) > 15
    assert not any(name.startswith("_") for name in inspect.signature(function).parameters)


@pytest.mark.parametrize("function", EVERYWHERE, ids=by_name)
def test_functions_refuse_to_be_called_outside_of_kernels(function: Callable[..., Any]) -> None:
    with pytest.raises(CompileError, match="only inside a kernel") as caught:
        function()
    assert caught.value.code == "TFW0113"


def test_iterators_refuse_to_iterate_outside_of_kernels() -> None:
    for iterator in (tl.range(3), tl.static_range(3)):
        with pytest.raises(CompileError, match="in a kernel's for loop"):
            list(iterator)


@pytest.mark.parametrize("function", EVERYWHERE, ids=by_name)
def test_every_function_has_a_meaning_with_its_parameters(function: Callable[..., Any]) -> None:
    from tilefw.frontend.builtins import MEANINGS

    name = function.__tilefw_builtin__  # type: ignore[attr-defined]
    if name in SPECIAL:
        return
    parameters = list(inspect.signature(MEANINGS[name]).parameters.values())[1:]
    if parameters and parameters[0].kind is inspect.Parameter.VAR_POSITIONAL:
        return  # made from a table row
    assert len(parameters) == len(inspect.signature(function).parameters), name


def test_every_meaning_is_a_function_of_the_language() -> None:
    from tilefw.frontend.builtins import MEANINGS
    from tilefw.language import shape
    from tilefw.language.extra import Vendor

    methods = [value for value in vars(tl.tensor_descriptor).values() if hasattr(value, "__tilefw_builtin__")]
    vendors = [value.__func__ for value in vars(Vendor).values() if isinstance(value, staticmethod)]
    others = (shape.item, *vendors, *methods)
    names = {function.__tilefw_builtin__ for function in (*EVERYWHERE, *others)}
    assert names - SPECIAL == set(MEANINGS)


def test_names_that_nobody_has_are_attribute_errors() -> None:
    for module in (tl, libdevice):
        with pytest.raises(AttributeError, match="no_such_name"):
            module.no_such_name  # noqa: B018


def test_every_vendor_has_the_one_libdevice() -> None:
    assert tl.extra.anyone.libdevice is tl.extra.libdevice is libdevice
    with pytest.raises(CompileError, match="gdc_wait has a meaning only inside a kernel"):
        tl.extra.anyone.gdc_wait()
    with pytest.raises(AttributeError):
        tl.extra.anyone.no_such_name  # noqa: B018


def test_every_name_of_tritons_language_is_known() -> None:
    language = pytest.importorskip("triton.language", reason="Triton is not installed")
    for name in language.__all__:
        assert hasattr(tl, name), name
    from triton.language.extra import libdevice as theirs

    for name, value in vars(theirs).items():
        if inspect.isfunction(value):
            assert hasattr(libdevice, name), name
    methods = [name for name in vars(language.tensor) if not name.startswith("_")]
    for name in methods:
        assert hasattr(tl.tensor, name) or name in ("T", "numel"), name


def test_parameters_are_named_as_in_triton() -> None:
    language = pytest.importorskip("triton.language", reason="Triton is not installed")
    removed = {"boundary_check", "padding_option"}  # of load and store: Triton 3.9 has them no more
    for name, function in BUILTINS.items():
        if name == "advance":
            continue  # a method alone in Triton 3.9
        theirs = getattr(language, name)
        wanted = [p for p in inspect.signature(getattr(theirs, "fn", theirs)).parameters if not p.startswith("_")]
        found = [p for p in inspect.signature(function).parameters if name not in ("load", "store") or p not in removed]
        assert found == wanted, name


def test_importing_the_language_loads_neither_xdsl_nor_numpy() -> None:
    program = "import sys, tilefw.language; print([m for m in ('xdsl', 'numpy', 'inspect') if m in sys.modules][:2])"
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "xdsl" not in out and "numpy" not in out
