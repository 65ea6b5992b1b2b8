"""One parameter of a jit function: what its annotation and the decorator say of how its argument is specialised."""

from __future__ import annotations

import copy
import inspect
from typing import Any

from tilefw.language.dtypes import dtype, pointer_type

_CONSTEXPR = "constexpr"
# What Triton's annotations of run-time parameters say, by their spelling.
_ANNOTATIONS = {"int": "i32", "float": "fp32", "bool": "i1"}


class KernelParameter:
    """One parameter of a jit function, the `num`-th of the function called `kernel`: how its argument is specialised.

    `described` names the argument in messages; an integer without an annotation and with all that may be compiled in of it is
    `plain`."""

    __slots__ = (
        "align", "annotation", "default", "described", "is_const", "is_constexpr", "is_keyword_only", "is_variadic",
        "kernel", "name", "num", "plain", "pointers", "specialize",
    )

    def __init__(self, parameter: inspect.Parameter, num: int, specialize: bool, align: bool, kernel: str = "") -> None:
        words = _annotation(parameter.annotation)
        self.num, self.kernel = num, kernel
        self._call(parameter.name)
        self.default = parameter.default
        self.is_variadic = parameter.kind is inspect.Parameter.VAR_POSITIONAL  # `*args`, whose argument is a tuple
        self.is_keyword_only = parameter.kind is inspect.Parameter.KEYWORD_ONLY
        self.is_constexpr = _CONSTEXPR in words
        self.is_const = not self.is_constexpr and ("const" in words or words.startswith("*k"))
        self.annotation = "" if self.is_constexpr else signature_type(words)
        self.specialize = specialize or self.is_constexpr  # a constexpr always is, listed or not, as in Triton
        self.align = align or self.is_constexpr
        self._tell_plain()
        self.pointers: dict[str, tuple[str, str]] = {}  # what `pointer` has found, by element type

    def _call(self, name: str) -> None:
        self.name = name
        self.described = f"argument `{name}` of kernel `{self.kernel}`"

    def annotate(self, words: str) -> None:
        """Take a scalar's type as if an annotation gave it."""
        self.annotation = signature_type(words)
        self._tell_plain()

    def _tell_plain(self) -> None:
        self.plain = self.specialize and self.align and not self.annotation

    @property
    def has_default(self) -> bool:
        return self.default is not inspect.Parameter.empty

    @property
    def do_not_specialize(self) -> bool:
        """Triton's name, which programs read that launch kernels themselves."""
        return not self.specialize

    @property
    def do_not_specialize_on_alignment(self) -> bool:
        """Triton's name for the same of alignment."""
        return not self.align

    def item(self, name: str) -> KernelParameter:
        """This parameter as that of one item of its tuple, which has a dotted name."""
        if name == self.name:
            return self
        made = copy.copy(self)
        made._call(name)
        return made

    def pointer(self, element: str) -> tuple[str, str]:
        """The signature's types of an array with elements of that name: of any, and of one that begins at a multiple of 16."""
        said = self.annotation if self.annotation.startswith("*") else ""
        kind = said or f"*{'k' if self.is_const else ''}{signature_name(element)}"
        found = self.pointers[element] = kind, f"{kind}:16" if self.specialize and self.align else kind
        return found


def _annotation(annotation: Any) -> str:
    if annotation is inspect.Parameter.empty:
        return ""
    if isinstance(annotation, str):
        # Under `from __future__ import annotations` a quoted annotation arrives with its quotes.
        words = annotation.strip("'\"")
        return words.rpartition(".")[2] if words.replace(".", "").isidentifier() else words
    if isinstance(annotation, pointer_type):
        return f"*{'k' if annotation.const else ''}{annotation.element_ty}"
    return annotation.name if isinstance(annotation, dtype) else getattr(annotation, "__name__", str(annotation))


def signature_type(words: str) -> str:
    """The signature's spelling of an annotation that names a type; empty for one that names none."""
    from tilefw.api.dtypes import dtype as find

    words = _ANNOTATIONS.get(words, words)
    stars = "*k" if words.startswith("*k") else "*" if words.startswith("*") else ""
    try:
        return stars + signature_name(find(words.removeprefix(stars)).name)
    except KeyError:
        return ""


def signature_name(name: str) -> str:
    """An element type in Triton's signatures: `i32` for `int32`, `u8` for `uint8`, `fp32` as it is."""
    for long, short in (("uint", "u"), ("int", "i")):
        if name.startswith(long):
            return short + name[len(long):]
    return name
