"""A memory model as a machine: messages a location, views of agents, releases and acquires with scopes, ways to memory."""

from tilefw.sim.memory.views.adversary import Adversary, Choices
from tilefw.sim.memory.views.events import EventLabel, Participant, SyncScope
from tilefw.sim.memory.views.machine import ViewMachine

__all__ = ["Adversary", "Choices", "EventLabel", "Participant", "SyncScope", "ViewMachine"]
