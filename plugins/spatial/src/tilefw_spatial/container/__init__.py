"""Programs as files, `.sdm`: `file` is the whole, `word` an instruction, `tables` all else, `reading` a stranger's bytes."""

from tilefw_spatial.container.file import is_container, read, write

__all__ = ["is_container", "read", "write"]
