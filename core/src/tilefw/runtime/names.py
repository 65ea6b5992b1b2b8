"""The nearest known name to a mistyped one, as the sentence that an error's help shows."""

from __future__ import annotations

from collections.abc import Iterable


def suggest(name: str, known: Iterable[str], *, what: str = "names") -> str:
    """"did you mean 'x'?" when something is near, else the list of what there is."""
    import difflib  # only wanted on the way to an error

    choices = sorted(set(known))
    near = difflib.get_close_matches(name.lower(), choices, n=1, cutoff=0.6)
    if near:
        return f"did you mean '{near[0]}'?"
    if not choices:
        return f"there are no {what}"
    shown = ", ".join(choices[:12]) + (", …" if len(choices) > 12 else "")
    return f"{what}: {shown}"
