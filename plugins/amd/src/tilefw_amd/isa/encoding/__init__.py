"""Bytes of instructions: formats, the forms of rows in them, encoder and decoder."""
