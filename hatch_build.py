"""The meta distribution's dependencies: the folders beside this file in a checkout, pinned versions in a release.

An sdist is a release when it is built from; TILEFW_RELEASE=1 makes a checkout one, for what is to be uploaded.
"""

import os
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

MEMBERS = {
    "tilefw-core": "core",
    "tilefw-nvidia": "plugins/nvidia",
    "tilefw-amd": "plugins/amd",
    "tilefw-spatial": "plugins/spatial",
    "tilefw-cpu": "plugins/cpu",
    "tilefw-conformance": "conformance",
}


class Members(MetadataHookInterface):
    def update(self, metadata: dict) -> None:
        root = Path(self.root)
        checkout = not (root / "PKG-INFO").exists() and not os.environ.get("TILEFW_RELEASE")
        metadata["dependencies"] = [
            f"{name} @ {(root / folder).as_uri()}" if checkout else f"{name}=={metadata['version']}"
            for name, folder in MEMBERS.items()
        ]
