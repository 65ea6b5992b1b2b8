"""A kernel's source: found in its file, in linecache or given as text; parsed; and every node placed in the user's own lines."""

from __future__ import annotations

import ast
import inspect
import types

from tilefw.api.errors import CompileError, Place


class KernelSource:
    """The text of one function, its syntax tree with the line numbers of its file, and the places of its nodes.

    `text` is the function's own source, `first_line` the line of the file where it starts.
    """

    __slots__ = ("_lines", "file", "first_line", "name", "text", "tree")

    def __init__(self, text: str, first_line: int, file: str, name: str) -> None:
        self.text = text
        self.first_line = first_line
        self.file = file
        self.name = name
        self._lines = text.splitlines()
        self.tree = self._parse()

    def _parse(self) -> ast.FunctionDef:
        # A function inside a class or another function is indented. Dedenting its text would break continuation lines
        # and strings that reach the margin, so it is wrapped in a block instead; the wrapper is line 0.
        indented = self.text[:1] in (" ", "\t")
        try:
            module = ast.parse("if True:\n" + self.text if indented else self.text, filename=self.file)
        except SyntaxError as error:
            line = (error.lineno or 1) - indented
            columns = error.offset or 0, error.end_offset or 0
            place = Place(self.file, self.first_line + line - 1, *columns, self._line(line), self.name)
            raise CompileError(f"the source of {self.name!r} does not parse: {error.msg}", "TFW0101", place) from None
        ast.increment_lineno(module, self.first_line - 1 - indented)
        found = [node for node in ast.walk(module) if isinstance(node, ast.FunctionDef) and node.name == self.name]
        if not found:
            raise CompileError(
                f"the source of {self.name!r} holds no `def {self.name}`",
                "TFW0101",
                Place(self.file, self.first_line, text=self._line(1)),
                note="kernels are functions made with `def`; lambdas and async functions are not kernels",
                help="if the file has changed since it was imported, import it again",
            )
        return found[-1]

    def _line(self, line: int) -> str:
        return self._lines[line - 1] if 0 < line <= len(self._lines) else ""

    def line(self, number: int) -> str:
        """A line of the function, by its number in the file."""
        return self._line(number - self.first_line + 1)

    def place(self, node: ast.AST, caller: Place | None = None) -> Place:
        """Where a node stands: its first line, and the columns (of characters, from 1) that it covers there."""
        line, end_line = getattr(node, "lineno", self.first_line), getattr(node, "end_lineno", None)
        text = self.line(line)
        start = self._column(text, getattr(node, "col_offset", 0))
        end = self._column(text, getattr(node, "end_col_offset", 0)) if end_line == line else len(text.rstrip()) + 1
        return Place(self.file, line, start, max(end, start + 1), text, self.name, caller)

    @staticmethod
    def _column(text: str, offset: int) -> int:
        # ast counts bytes of UTF-8; people and editors count characters.
        return len(text.encode()[:offset].decode(errors="ignore")) + 1


def of_function(function: types.FunctionType, text: str | None = None) -> KernelSource:
    """The source of a function: `text` if given (then its first line is line 1), else what its file or linecache has."""
    file, name = function.__code__.co_filename, function.__name__
    if text is not None:
        return KernelSource(text, 1, file, name)
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError, IndentationError, SyntaxError):
        raise CompileError(
            f"the source of kernel {name!r} cannot be found",
            "TFW0101",
            Place(file, function.__code__.co_firstlineno, function=name),
            note="tilefw compiles a kernel from its text",
            help="pass it as `tilefw.jit(source=text)`, or register it in linecache before exec",
        ) from None
    source = KernelSource("".join(lines), first or 1, file, name)
    _check_parameters(source, function)
    return source


def _check_parameters(source: KernelSource, function: types.FunctionType) -> None:
    """A file that changed after it was imported gives another function's text; the parameters tell."""
    code, arguments = function.__code__, source.tree.args
    written = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    if written != list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]):
        raise CompileError(
            f"the source of {source.name!r} has changed since it was imported",
            "TFW0101",
            source.place(source.tree),
            help="import the module again",
        )
