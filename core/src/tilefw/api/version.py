"""The version of the plugin interface and the name under which plugins are found; imports nothing."""

# A plugin writes the version that it was written against as a literal `TILEFW_API = (major, minor)` in its hook module.
# It is accepted when the major is equal and its minor is not above ours; while major is 0, the minors must be equal.
TILEFW_API = (0, 1)
ENTRY_POINT_GROUP = "tilefw.backends"


def accepts(version: tuple[int, int]) -> bool:
    """Whether this core serves a plugin written against `version`."""
    major, minor = version
    if major != TILEFW_API[0]:
        return False
    return minor == TILEFW_API[1] if major == 0 else minor <= TILEFW_API[1]
