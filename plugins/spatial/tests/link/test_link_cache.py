"""Links are kept with what decides them, and what is kept but damaged is made again."""

from __future__ import annotations

from pathlib import Path

import pytest
from linked_model import LinkedModel

from tilefw.graph import link_cache
from tilefw.graph.compile_graph import compile_graph
from tilefw.graph.plan import ModelPlan
from tilefw.runtime.compilation.cache import DiskCache
from tilefw_spatial.backend import SpatialBackend


def plan(also_the_first: bool = False) -> ModelPlan:
    """(x + x) + x; the first sum may be an output too."""
    model = LinkedModel(16)
    first = model.added("first", model.x, model.x, model.rows("h"))
    model.made.output("y", model.added("second", first, model.x, model.rows("y")))
    if also_the_first:
        model.made.output("h", first)
    return compile_graph(model.made.graph(), "spatial-sdm1")


@pytest.fixture
def links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The chains that the backend was asked to link, by their lengths; the cache begins empty."""
    monkeypatch.setenv("TILEFW_CACHE_DIR", str(tmp_path))
    asked, link = list[int](), SpatialBackend.link

    def noted(self: SpatialBackend, launches, options):
        asked.append(len(launches))
        return link(self, launches, options)

    monkeypatch.setattr(SpatialBackend, "link", noted)
    return asked


def test_a_link_is_made_once_for_what_decides_it(links: list[int]) -> None:
    first, again = plan(), plan()
    assert links == [2] and first.links == again.links and first.links[0].count == 2
    assert len(plan(also_the_first=True).links[0].buffers) == 3 and links == [2, 2]


def test_that_launches_are_not_linked_is_kept_too(links: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SpatialBackend, "link", lambda self, launches, options: links.append(0))
    assert plan().links == plan().links == () and links == [0]


def test_another_machine_links_anew(links: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import tilefw_spatial

    packaged = Path(tilefw_spatial.__file__).parent / "data/sdm-1.yaml"
    text = packaged.read_text("utf-8").replace("drain: {value: 4,", "drain: {value: 5,")
    (tmp_path / "other.yaml").write_text(text, "utf-8")
    plan()
    monkeypatch.setenv("TILEFW_SPATIAL_MACHINE", str(tmp_path / "other.yaml"))
    plan()
    assert links == [2, 2]


@pytest.mark.parametrize("payload", [b"", b"[]\n", b'{"count": 2}\n', b'{"bytes": -1}\n', b'{"bytes": 1}\nx'])
def test_an_entry_that_is_no_link_is_none(payload: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEFW_CACHE_DIR", str(tmp_path))
    DiskCache(tmp_path).put("abcd", payload)
    assert link_cache.find("abcd") is None
