"""Programs written for Triton run on tilefw unchanged: `import triton` means tilefw, `device="cuda"` means the host's memory.

    python -m tilefw.triton program.py             # or: tilefw run program.py --triton --target NAME
    import tilefw.triton; tilefw.triton.install()  # in a notebook, or a conftest.py

`names.py` says which modules and names of Triton there are, and what each is here; `importing.py` puts them in Triton's place.
`chip.py` and `driver.py` answer for the device, `torch_device.py` and `torch_cuda.py` do for PyTorch, `testing.py` is
`triton.testing`. Nothing here imports PyTorch: what is said of it happens when the program does.
"""

from __future__ import annotations

from tilefw.triton.importing import install, installed, uninstall

__all__ = ["install", "installed", "sanitize", "uninstall"]


def sanitize(target: str | None = None) -> None:
    """Keep Triton, and make tilefw its device: see sanitizer.py."""
    from tilefw.triton import sanitizer

    sanitizer.sanitize(target)
