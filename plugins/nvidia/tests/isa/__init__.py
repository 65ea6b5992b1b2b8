"""Tests of the PTX grammar and of the instruction table."""
