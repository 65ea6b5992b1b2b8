"""Normalisation: a module that means the same, in the form that fusion looks for."""
