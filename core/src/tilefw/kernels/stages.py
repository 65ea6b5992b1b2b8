"""The stages of a verification, and to which of them the steps of the compiler and of an executor belong."""

from __future__ import annotations

STAGES = ("verify", "lower", "emit", "assemble", "simulate", "compare")

# By the names under which steps are timed (`tilefw.runtime.stage_clock`).
STAGE_OF = {
    "requirements": "verify", "cache": "verify", "front end": "verify",
    "passes": "lower", "lowering": "lower", "emit": "emit", "assemble": "assemble",
    "load": "simulate", "copy in": "simulate", "execute": "simulate", "copy back": "simulate",
    "reference": "compare",
}
