"""The lines of the kernel's source in LLVM IR, as metadata of which LLVM makes a line table: for debuggers, and for faults."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilefw.api.ir import place_of

if TYPE_CHECKING:
    from tilefw.api import Place
    from tilefw.api.ir import Operation
    from tilefw.api.tile import LoopMachine

DWARF = 4
"""The version of the line table."""


class DebugLines:
    """Metadata of one module: `function` begins one, and what is asked for of `located` belongs to it. `within` stands behind an
    instruction of that function which comes of no op."""

    def __init__(self) -> None:
        self._nodes: list[str] = []
        self._known: dict[str, int] = {}
        self._file = ""
        self._scope = 0
        self.within = ""
        self._unit = self._node("")  # its file is known when there is a function

    def function(self, name: str, place: Place | None) -> str:
        """What stands behind the head of a function that begins at a place."""
        self._file = _file("<unknown>" if place is None else place.file)
        line = 0 if place is None else place.line
        file = self._node(self._file)
        kind = self._node("!DISubroutineType(types: null)")
        self._scope = self._node(
            f'distinct !DISubprogram(name: "{_escaped(name)}", file: !{file}, line: {line}, scopeLine: {line}, type: !{kind}, '
            f"spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !{self._unit})"
        )
        self.within = f", !dbg !{self._node(f'!DILocation(line: {line}, column: 0, scope: !{self._scope})')}"
        self._nodes[self._unit] = (
            f'distinct !DICompileUnit(language: DW_LANG_C, file: !{file}, producer: "tilefw", isOptimized: true, '
            "runtimeVersion: 0, emissionKind: LineTablesOnly)"
        )
        return f" !dbg !{self._scope}"

    def located(self, origin: Operation | None) -> str:
        """What stands behind an instruction that is written for an op; nothing for one without a place."""
        place = None if origin is None else place_of(origin, with_text=False)
        if place is None:
            return ""
        file, scope = _file(place.file), self._scope
        if file != self._file:
            scope = self._node(f"!DILexicalBlockFile(scope: !{scope}, file: !{self._node(file)}, discriminator: 0)")
        column = place.column if place.column < 1 << 16 else 0  # LLVM keeps 16 bits of it
        return f", !dbg !{self._node(f'!DILocation(line: {place.line}, column: {column}, scope: !{scope})')}"

    def _node(self, text: str) -> int:
        number = self._known.get(text)
        if number is None:
            number = self._known[text] = len(self._nodes)
            self._nodes.append(text)
        return number

    def text(self) -> str:
        """The module's metadata."""
        first = len(self._nodes)
        flags = (f'!{{i32 2, !"Dwarf Version", i32 {DWARF}}}', '!{i32 2, !"Debug Info Version", i32 3}')
        lines = [f"!{number} = {node}" for number, node in enumerate((*self._nodes, *flags))]
        return "\n".join([f"!llvm.dbg.cu = !{{!{self._unit}}}", f"!llvm.module.flags = !{{!{first}, !{first + 1}}}", *lines])


class LocatedLines(list[str]):
    """Lines of a function; an instruction among them gets the place of the op that is being written."""

    def __init__(self, writer: LoopMachine[Any], debug: DebugLines) -> None:
        super().__init__()
        self._writer, self._debug = writer, debug
        self._of: Operation | None = None
        self._suffix = ""

    def append(self, text: str) -> None:
        origin = self._writer.origin
        if origin is not self._of:
            self._of, self._suffix = origin, self._debug.located(origin)
        super().append(text + self._suffix if text.startswith("  ") else text)


def _file(name: str) -> str:
    return f'!DIFile(filename: "{_escaped(name)}", directory: "")'


def _escaped(text: str) -> str:
    plain = (c if c.isascii() and c.isprintable() and c not in '"\\' else "".join(f"\\{b:02X}" for b in c.encode()) for c in text)
    return "".join(plain)
