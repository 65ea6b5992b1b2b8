"""The closed set of outcomes: which of them leave a run green, and which one alone counts as passed."""

from __future__ import annotations

# In the order in which summaries show them. `unsupported` and `over-capacity` are rightful refusals, never passes.
OUTCOMES = ("pass", "xfail", "unsupported", "over-capacity", "fail", "xpass", "overclaimed", "error", "timeout")
GOOD = frozenset({"pass", "xfail", "unsupported", "over-capacity"})
UNFINISHED = frozenset({"timeout"})
"""Not good, and not known to be wrong: the case did not end."""
