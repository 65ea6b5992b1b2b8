"""Cases of the conformance suite on AArch64 without such a machine: this tree in an AArch64 Python, emulated by qemu.

    dpkg --add-architecture arm64 && apt-get update && apt-get install qemu-user     # once, on Debian 12
    python plugins/cpu/aarch64.py /tmp/aarch64 prepare      # Python as Debian's packages, wheels of what tilefw needs
    python plugins/cpu/aarch64.py /tmp/aarch64              # the first core case of every group, an hour
    python plugins/cpu/aarch64.py /tmp/aarch64 dot_tile vector_add    # all core cases of these groups
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PYTHON = "3.11"
PACKAGES = (
    "libc6", "libgcc-s1", "libstdc++6", f"python{PYTHON}", f"python{PYTHON}-minimal", f"libpython{PYTHON}-minimal",
    f"libpython{PYTHON}-stdlib", "libexpat1", "zlib1g", "libffi8", "libssl3", "libbz2-1.0", "liblzma5", "libsqlite3-0", "libuuid1",
)
WHEELS = (
    "llvmlite>=0.50,<0.51", "numpy>=1.26", "xdsl==0.74.*", "ml_dtypes>=0.5", "pluggy>=1.5", "pyyaml>=6", "rich>=13", "pytest>=8",
)
PLATFORMS = [word for level in ("2014", "_2_17", "_2_27", "_2_28") for word in ("--platform", f"manylinux{level}_aarch64")]
TREE = Path(__file__).resolve().parents[2]
SOURCES = [str(TREE / folder / "src") for folder in ("core", "plugins/cpu", "conformance")]
PLUGIN = {
    "METADATA": "Metadata-Version: 2.1\nName: tilefw-cpu\nVersion: 0.1.0\n",
    "entry_points.txt": "[tilefw.backends]\ncpu = tilefw_cpu.plugin\n",
}


def prepare(folder: Path) -> None:
    """Everything below `folder`: the packages' files in `root`, the wheels' in `site`, and `python`, which runs the emulator."""
    debs, root, site = (folder / name for name in ("debs", "root", "site"))
    for made in (debs, root, site):
        made.mkdir(parents=True, exist_ok=True)
    subprocess.run(["apt-get", "download", *(f"{name}:arm64" for name in PACKAGES)], cwd=debs, check=True)
    for package in debs.glob("*.deb"):
        subprocess.run(["dpkg", "-x", package, root], check=True)
    words = ["--only-binary=:all:", "--python-version", PYTHON, "--implementation", "cp", *PLATFORMS]
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--upgrade", "--target", site, *words, *WHEELS], check=True)
    for name, text in PLUGIN.items():
        told = site / "tilefw_cpu-0.1.0.dist-info" / name
        told.parent.mkdir(exist_ok=True)
        told.write_text(text)
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nexec qemu-aarch64 -L {root} {root}/usr/bin/python{PYTHON} "$@"\n')
    python.chmod(0o755)
    # A child that Python starts of itself is no program of this machine's.
    (site / "sitecustomize.py").write_text(f"import sys\nsys.executable = {str(python)!r}\n")


def emulated(folder: Path, groups: list[str]) -> int:
    """This file in the emulated Python, which runs the cases."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(folder / "site"), *SOURCES]), "PYTHONDONTWRITEBYTECODE": "1",
        "TILEFW_CACHE_DIR": str(folder / "cache"),
    }
    return subprocess.run([folder / "python", __file__, "--cases", *groups], env=environment, check=False).returncode


def run_cases(groups: list[str]) -> int:
    """Run cases one by one in this process; gives how many did not pass."""
    from tilefw.runtime.plugins.loader import find_target
    from tilefw_conformance.case_files import bundled
    from tilefw_conformance.runner import run

    target, bad, seen = find_target("cpu"), 0, set[str]()
    for case in bundled():
        group = case.id.split("/")[0]
        if case.level != "core" or (group not in groups if groups else group in seen):
            continue
        seen.add(group)
        result = run(case, target)
        print(f"{result.outcome}  {case.id}" + ("" if result.outcome == "pass" else f"\n{result.message()}"), flush=True)
        bad += result.outcome not in ("pass", "unclaimed")
    return bad


if __name__ == "__main__":
    first, *rest = sys.argv[1:]
    if first == "--cases":
        sys.exit(min(1, run_cases(rest)))
    sys.exit(prepare(Path(first).resolve()) if rest == ["prepare"] else emulated(Path(first).resolve(), rest))
