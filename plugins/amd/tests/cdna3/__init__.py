"""Tests of the instruction table and of its texts and bytes."""
