"""What plugins are written against does not change under one version, and is documented name by name."""

from __future__ import annotations

import copy
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import surface

RECORDED = json.loads(surface.RECORD.read_text(encoding="utf-8"))


def test_the_surface_is_the_recorded_one() -> None:
    changed = surface.differences(RECORDED["surface"], surface.surface())
    assert not changed, "\n".join([
        *changed, "raise TILEFW_API in core/src/tilefw/api/version.py, then: python core/tests/api/surface.py --write"
    ])
    assert RECORDED["api"] == surface.record()["api"], "python core/tests/api/surface.py --write"


def test_the_page_is_made_of_the_docstrings() -> None:
    assert surface.PAGE.read_text(encoding="utf-8") == surface.page(), "python core/tests/api/surface.py --write"


def test_every_name_is_documented() -> None:
    recorded = RECORDED["surface"]
    assert [
        f"{module}.{name}" for module in surface.MODULES for name in surface.names_of(module)
        if recorded.get(module, {}).get(name, {}).get("kind") != "xdsl" and not surface.documentation(module, name)
    ] == []


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
    assert found["tilefw.api"]["Backend"]["members"]["device"] == "(self) -> Device"
    assert found["tilefw.api"]["Backend"]["members"]["pipeline"].startswith("abstract (self, options: CompileOptions)")
    assert "emit" in found["tilefw.api.simt"]["SimtBackend"]["members"]
    assert found["tilefw.api.ir"]["ModuleOp"] == {"kind": "xdsl", "is": "xdsl.dialects.builtin.ModuleOp"}
