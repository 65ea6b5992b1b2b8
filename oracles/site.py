"""One place where machine code is broken on purpose; which places there are is each instruction set's own business."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Site:
    """One mutant: what was done to which line (from 1), and the changed text of the whole file."""

    kind: str
    line: int
    before: str
    after: str
    code: str

    @property
    def following(self) -> str:
        """The next line of code behind the changed one."""
        return next(iter(self.behind), "")

    @property
    def behind(self) -> list[str]:
        """The lines of code behind the changed one, blanks collapsed: no comment, label or directive."""
        lines = (" ".join(line.split()) for line in self.code.splitlines()[self.line :])
        return [line for line in lines if line and not line.startswith((";", "/", ".", "$")) and not line.endswith(":")]

    def __str__(self) -> str:
        return f"{self.kind} at line {self.line}: `{self.before}` -> `{self.after or 'deleted'}`"


def changed(lines: list[str], index: int, kind: str, after: str) -> Site:
    """The site at lines[index] whose line becomes `after`."""
    text = "\n".join([*lines[:index], after, *lines[index + 1 :]]) + "\n"
    return Site(kind, index + 1, " ".join(lines[index].split()), " ".join(after.split()), text)


def within(site: Site, begin: int, end: int) -> Site:
    """The site in a file that is the lines from `begin` to `end` alone (from 0, the end not among them)."""
    code = "\n".join(site.code.splitlines()[begin:end]) + "\n"
    return Site(site.kind, site.line - begin, site.before, site.after, code)
