"""A plugin that must take no other down. It raises when it is imported."""

TILEFW_API = (0, 1)

raise RuntimeError("the driver of this card is too old")
