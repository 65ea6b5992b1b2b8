"""Hooks of the NVIDIA plugin: plain data only, nothing heavy is imported here."""

TILEFW_API = (0, 1)
