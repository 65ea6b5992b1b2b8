"""A stand-in for a vendor's cards and driver library: the library in C, whose calls a server in Python answers with our simulator.

A plugin's tests have the prototypes (a C file that includes `calls.h`) and a `CardRuntime` with a method for each function:

    with StandIn(runtime, cards, version) as standin:        # a server; its socket's path is in STANDIN_SOCKET
        monkeypatch.setenv("TILEFW_…_LIBRARY", built(source, folder))
        tilefw.… executor="hw"
        standin.names()                                       # which functions were called, in order

Work that a stream holds is done only when somebody waits for it, so that a result that is read too early is a wrong one.
"""

from oracles.standin.build import COMPILER, built
from oracles.standin.server import Process, StandIn
from oracles.standin.streams import CardModel, Event, StatusError, Stream

__all__ = ["COMPILER", "CardModel", "Event", "Process", "StandIn", "StatusError", "Stream", "built"]
