"""Names that Triton keeps outside of its core language."""

from tilefw.language.extra import libdevice

__all__ = ["libdevice"]
