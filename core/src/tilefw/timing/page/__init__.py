"""One self-contained HTML page of profiles: limits, roofline, and source lines beside the machine code that they became.

All of it is written here; the script only joins lines and instructions under the reader's hand. `sections` writes the parts,
`roofline` the picture.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from tilefw.page_template import filled
from tilefw.timing.page.sections import section


def page(profiles: Sequence[Mapping[str, Any]], pictures: Sequence[str] = ()) -> str:
    """The page of profiles as `LaunchProfile.to_json` gives them; `pictures`: their timelines as SVG, where there are some."""
    names = [f"{profile['kernel']} on {profile['target']}" for profile in profiles]
    links = "".join(f'<a href="#p{number}">{escape(name)}</a> ' for number, name in enumerate(names))
    drawn = [*pictures, *[""] * (len(profiles) - len(pictures))]
    body = "".join(section(number, *both) for number, both in enumerate(zip(profiles, drawn, strict=True)))
    slots = {"title": escape(", ".join(dict.fromkeys(names))), "links": links if len(names) > 1 else "", "body": body}
    return filled(__name__, ("page.js",), slots)


def framed(profiles: Sequence[Mapping[str, Any]]) -> str:
    """The page in a frame of a notebook's cell, whose own style it neither takes nor changes."""
    style = "width:100%;height:640px;border:1px solid #8884;border-radius:6px"
    return f'<iframe title="profile" sandbox="allow-scripts" style="{style}" srcdoc="{escape(page(profiles))}"></iframe>'
