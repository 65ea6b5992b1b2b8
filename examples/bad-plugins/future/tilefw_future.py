"""A plugin that must take no other down. It was written against an interface that is not there yet."""

TILEFW_API = (2, 0)

raise AssertionError("a plugin of another interface must not be imported")
