"""Tests of what selection emits beside the rules of rows: operands, shuffles, arguments, pseudo-instructions, lane masks."""
