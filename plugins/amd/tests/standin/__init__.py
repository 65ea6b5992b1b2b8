"""A stand-in for AMD's cards and their runtime: `libamdhip64.so` in C, whose calls a server in Python answers with our simulator.

    with StandIn() as standin:                       # a server; its socket's path is in STANDIN_SOCKET
        monkeypatch.setenv("TILEFW_HIP_LIBRARY", built(folder))
        tilefw.… executor="hw"
        standin.names()                              # which functions were called, in order

Work that a stream holds is done only when somebody waits for it, so that a result that is read too early is a wrong one.
"""

from standin.build import COMPILER, built
from standin.server import StandIn
from standin.streams import CardModel

__all__ = ["COMPILER", "CardModel", "StandIn", "built"]
