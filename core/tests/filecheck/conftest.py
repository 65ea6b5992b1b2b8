"""IR files under this folder are tests."""

from tilefw.testing.filecheck import pytest_collect_file

__all__ = ["pytest_collect_file"]
