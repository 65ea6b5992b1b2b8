"""Expansions: every elementwise row that a chip lacks, written in rows that it has, down to the base set.

A chip lists the rows it serves itself; `Legal` builds any row on it, by the chip's own instruction or by the first rule
here that fits. The rules stand by subject: `narrow` (integers below 32 bits), `wide` (64 bits as pairs), `division`,
`formats` (float formats by integer arithmetic), `halves` (16-bit floats through f32), `floats` (what f32 and f64 need of
comparisons, signs and rounding), `exact` (correctly rounded division and root, remainder), `transcendental`. They know
nothing of registers: `elements` lets them emit instructions.
"""

from tilefw.simt.expand.base import BASE_ROWS
from tilefw.simt.expand.builder import ExpansionBuilder, Legal, Rule, key
from tilefw.simt.expand.rules import RULES, legal

__all__ = ["BASE_ROWS", "RULES", "ExpansionBuilder", "Legal", "Rule", "key", "legal"]
