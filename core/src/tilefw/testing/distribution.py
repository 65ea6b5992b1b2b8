"""A distribution with a plugin, as pip leaves one: what a test puts on the import path to have a plugin installed."""

from __future__ import annotations

from pathlib import Path

from tilefw.api.version import ENTRY_POINT_GROUP


def write(site: Path, plugin: str, module: str, *, name: str = "", version: str = "1.0") -> None:
    """Write the metadata of the distribution `name` (`tilefw-PLUGIN` unless said) into the folder `site`; the hooks of its plugin
    stand in `module`."""
    name = name or f"tilefw-{plugin}"
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(f"[{ENTRY_POINT_GROUP}]\n{plugin} = {module}\n")
