"""What plugins are written against does not change under one version, and is documented name by name."""

from __future__ import annotations

import copy
import inspect
import json
import sys
from importlib import import_module
from pathlib import Path

from tilefw.api.machine import InstructionTraits, SpillModel
from tilefw.simt.lane import Lane
from tilefw.tile.dialect.context import Tile

sys.path.insert(0, str(Path(__file__).parent))
import reference_pages
import surface

RECORDED = json.loads(surface.RECORD.read_text(encoding="utf-8"))


def test_the_surface_is_the_recorded_one() -> None:
    changed = surface.differences(RECORDED["surface"], surface.surface())
    assert not changed, "\n".join([
        *changed, "raise TILEFW_API in core/src/tilefw/api/version.py, then: python core/tests/api/surface.py --write"
    ])
    assert RECORDED["api"] == surface.record()["api"], "python core/tests/api/surface.py --write"


COMMAND = "python core/tests/api/surface.py --write"


def test_the_pages_are_made_of_the_docstrings() -> None:
    assert surface.PAGE.read_text(encoding="utf-8") == reference_pages.api_page(), COMMAND
    assert surface.OPERATIONS_PAGE.read_text(encoding="utf-8") == reference_pages.operations_page(), COMMAND


def test_the_page_has_whole_docstrings_literals_and_fields_in_their_order() -> None:
    page = reference_pages.api_page()
    assert inspect.cleandoc(SpillModel.__doc__ or "") in page and inspect.cleandoc(InstructionTraits.__doc__ or "") in page
    const = page.partition("**Const**")[2].partition("\n**")[0]
    assert const.index("`type: str`") < const.index("`bits: int`")
    assert "`AtomicOp`: `'add'`" in page
    assert "- `dtype_of(" in page.partition("**types**")[2] and "- `to_bytes(" in page.partition("**numbers**")[2]


def test_no_entry_repeats_the_members_of_a_documented_base() -> None:
    page = reference_pages.api_page()
    assert "- `message: str`" not in page.partition("**CheckError**")[2].partition("\n**")[0]
    assert page.count("- `_") == page.count("- `__init__(")


def test_every_operation_has_an_entry() -> None:
    page = reference_pages.operations_page()
    operations = [*Tile.operations, *Lane.operations]
    assert len(operations) > 100
    assert [op.name for op in operations if f"`{op.name}`" not in page and f"| `{op.name.partition('.')[2]}` |" not in page] == []


def test_every_name_is_documented() -> None:
    recorded = RECORDED["surface"]
    assert [
        f"{module}.{name}" for module in surface.MODULES for name in surface.names_of(module)
        if recorded.get(module, {}).get(name, {}).get("kind") != "xdsl" and not surface.documentation(module, name)
    ] == []


def test_every_method_and_property_is_documented() -> None:
    classes = {
        value for module in surface.MODULES for name in surface.names_of(module)
        if inspect.isclass(value := getattr(import_module(module), name)) and value.__module__.partition(".")[0] == "tilefw"
    }
    members = [
        (cls, name) for cls in classes for name, kind in surface.members_of(cls).items()
        if name != "__init__" and surface.is_callable_or_property(kind)
    ]
    assert len(members) > 500
    assert sorted(f"{cls.__name__}.{name}" for cls, name in members if not surface.member_documentation(cls, name)) == []


def test_each_kind_of_change_is_seen() -> None:
    """A name that goes, a field with another default, a parameter more, a member of a base class."""
    new = copy.deepcopy(RECORDED["surface"])
    del new["tilefw.api"]["dtype"]
    new["tilefw.api"]["CompileOptions"]["fields"]["num_warps"] = "int = 8"
    new["tilefw.api"]["Backend"]["members"]["device"] = "(self, index: int) -> Device"
    new["tilefw.api.sim"]["Added"] = {"kind": "class"}
    assert surface.differences(RECORDED["surface"], new) == [
        "changed: tilefw.api.Backend", "changed: tilefw.api.CompileOptions", "removed: tilefw.api.dtype",
        "added: tilefw.api.sim.Added",
    ]


def test_fields_signatures_and_inherited_members_are_in_it() -> None:
    found = surface.surface()
    assert found["tilefw.api"]["CompileOptions"]["fields"]["num_warps"] == "int = 4"
    assert found["tilefw.api"]["Backend"]["members"]["device"] == "(self, number: int | None = None) -> Device"
    assert found["tilefw.api"]["Backend"]["members"]["pipeline"].startswith("abstract (self, options: CompileOptions)")
    assert "emit" in found["tilefw.api.simt"]["SimtBackend"]["members"]
    assert found["tilefw.api.ir"]["ModuleOp"] == {"kind": "xdsl", "is": "xdsl.dialects.builtin.ModuleOp"}
