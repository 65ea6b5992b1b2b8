"""Litmus tests on the view machine: their text, their threads, seeded schedules and systematic exploration."""

from tilefw.sim.memory.litmus.exploring import explore
from tilefw.sim.memory.litmus.outcomes import Tally
from tilefw.sim.memory.litmus.sampling import sample
from tilefw.sim.memory.litmus.test import LitmusTest
from tilefw.sim.memory.litmus.text import LitmusDialect, read

__all__ = ["LitmusDialect", "LitmusTest", "Tally", "explore", "read", "sample"]
