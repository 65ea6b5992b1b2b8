"""Text to a checked module, and the verifier with messages in words: every mistake is an IRError with its line."""

from __future__ import annotations

import re
from collections.abc import Iterable

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.scf import IfOp, WhileOp
from xdsl.ir import Block, BlockArgument, Dialect, Operation, OpResult, Region, SSAValue
from xdsl.utils.exceptions import DiagnosticException, ParseError

from tilefw.api.errors import IRError, Place
from tilefw.api.garbage_collection import paused
from tilefw.api.signals import from_signal_handler
from tilefw.tile.dialect.context import context
from tilefw.tile.text.located_parser import LocatedParser
from tilefw.tile.text.source_location import place_of
from tilefw.tile.text.stock_ops import plainly_right


def parse(text: str, name: str = "<text>", dialects: Iterable[Dialect] = ()) -> ModuleOp:
    """A verified module from text of any level; `dialects` are those beside tile IR's. Raises IRError (TFW0401, TFW0402)."""
    ctx = context()
    for dialect in dialects:
        if ctx.get_optional_dialect(dialect.name) is None:
            ctx.load_dialect(dialect)
    module = _parse(ctx, text, name)
    verify(module)
    return module


def _parse(ctx: Context, text: str, name: str) -> ModuleOp:
    parser = None
    try:
        with paused():
            parser = LocatedParser(ctx, text, name)
            return parser.parse_module()
    except ParseError as error:
        message = error.msg.strip().splitlines()[0] if error.msg.strip() else "malformed IR"
        if (undefined := _UNDEFINED.search(message)) is not None:
            raise _undefined(text, name, undefined[1]) from None
        raise IRError(message, "TFW0401", _text_place(text, name, error.span.start, error.span.end)) from None
    except RecursionError:
        raise IRError("the IR text is nested too deeply", "TFW0401", Place(name, 1)) from None
    except Exception as error:  # stock dialects' parsers check their types by asserts and plain exceptions
        if from_signal_handler(error):
            raise
        position = parser.pos if parser is not None else 0
        message = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise IRError(f"malformed IR: {message}", "TFW0401", _text_place(text, name, position, position + 1)) from None


# xDSL finds out at the end of a region, and points there.
_UNDEFINED = re.compile(r"values used but not defined: \[(%[\w.$-]+)")


def _undefined(text: str, name: str, value: str) -> IRError:
    """The error for a value that nothing defines, at its first use."""
    use = re.search(re.escape(value) + r"(?![\w.$-])", text)
    start = use.start() if use is not None else 0
    return IRError(f"value {value} is not defined", "TFW0401", _text_place(text, name, start, start + len(value)))


def _text_place(text: str, name: str, start: int, end: int) -> Place:
    start = min(start, len(text))
    line = text.count("\n", 0, start) + 1
    begin = text.rfind("\n", 0, start) + 1
    stop = text.find("\n", begin)
    line_text = text[begin : stop if stop >= 0 else len(text)]
    column = start - begin + 1
    return Place(name, line, column, max(column + 1, min(end - begin, len(line_text)) + 1), line_text)


def verify(module: ModuleOp) -> None:
    """Check every op and that values are defined before they are used. Raises IRError (TFW0402) with the op's place."""
    _verify_op(module, set())


def _verify_op(op: Operation, visible: set[SSAValue]) -> None:
    try:
        # xDSL's own check is of ops with successors, of terminators and of operands that are erased, and so not visible.
        if plainly_right(op, visible):
            pass
        elif op.next_op is None or op._successors:
            op.verify(verify_nested_ops=False)
        else:
            op.verify_()
    except Exception as error:  # stock ops verify by plain exceptions and asserts too
        if from_signal_handler(error):
            raise
        raise IRError(_reason(error, op), "TFW0402", place_of(op)) from None
    if not visible.issuperset(op._operands):
        index = next(index for index, operand in enumerate(op.operands) if operand not in visible)
        raise IRError(f"operand {index} of {op.name} is used before or outside where it is defined", "TFW0402", place_of(op))
    if op.__class__ is IfOp:
        _verify_branches(op)
    for region in op.regions:
        _verify_region(region, visible)


def _verify_branches(op: Operation) -> None:
    """Both branches give what the op does: xDSL compares that of loops alone."""
    wanted = op.result_types
    for region in op.regions:
        last = None if region.last_block is None else region.last_block.last_op
        given = () if last is None else last.operand_types
        if tuple(given) != tuple(wanted):
            yielded, results = (", ".join(map(str, types)) or "nothing" for types in (given, wanted))
            raise IRError(f"a branch of {op.name} yields {yielded}, and its results are {results}", "TFW0402", place_of(last or op))


def _verify_region(region: Region, visible: set[SSAValue]) -> None:
    for block in region.blocks:
        added: list[OpResult | BlockArgument] = list(block.args)
        visible.update(block.args)
        for op in block.ops:
            _verify_op(op, visible)
            visible.update(op.results)
            added.extend(op.results)
        _verify_terminated(block)
        visible.difference_update(added)


def _verify_terminated(block: Block) -> None:
    parent = block.parent_op()
    if parent is not None and not isinstance(parent, ModuleOp) and block.last_op is None:
        raise IRError(f"a block of {parent.name} is empty: it needs its terminator", "TFW0402", place_of(parent))


def _reason(error: Exception, op: Operation) -> str:
    cause: BaseException = error
    while isinstance(cause, DiagnosticException) and cause.__cause__ is not None:
        cause = cause.__cause__
    lines = [line for line in str(cause).strip().splitlines() if line.strip()]
    reason = lines[0].removeprefix("Operation does not verify: ") if lines else type(cause).__name__
    return reason if op.name in reason else f"{op.name}: {reason}"


def with_locations(module: ModuleOp) -> str:
    """The module's text with each op's location, so that what reads it back can name the user's own lines."""
    from io import StringIO

    from xdsl.printer import Printer

    class LocatedPrinter(Printer):
        """`scf.while` prints its types by a method that also prints the location, in a place where no parser takes it.

        xDSL writes literals byte by byte, and escapes bytes beyond ASCII, which its own parser does not take in a file's name.
        """

        def print_string_literal(self, string: str) -> None:
            if string.isprintable() and '"' not in string and "\\" not in string:
                self.print_string(f'"{string}"')
            else:
                super().print_string_literal(string)

        def print_operation_type(self, op: Operation) -> None:
            self.print_function_type(op.operand_types, op.result_types)
            if not isinstance(op, WhileOp):
                self.print_string(" ")
                self.print_attribute(op.location)

    stream = StringIO()
    LocatedPrinter(stream, print_debuginfo=True).print_op(module)
    return stream.getvalue() + "\n"
