"""What a kernel handles as one thing and has several run-time parts: the base of block pointers, descriptors and aggregates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any


class CompositeValue(ABC):
    """A value of several run-time parts that is no tuple: kernels hand it on as one thing and read its attributes."""

    __slots__ = ()

    @property
    @abstractmethod
    def parts(self) -> tuple[Any, ...]:
        """The run-time values of which it is made, in tuples as need be."""

    @property
    @abstractmethod
    def kind(self) -> object:
        """What is known of it at compile time: values of one class and equal kinds have one type if their parts have."""

    @abstractmethod
    def with_parts(self, parts: tuple[Any, ...]) -> CompositeValue:
        """The same kind of value, made of these parts."""

    @abstractmethod
    def attributes(self) -> Mapping[str, Any]:
        """What `value.name` is for the names that kernels may read; functions are its methods."""
