"""From a graph of arrays to stream operations: which axes of each value lie along lanes and which in time, and the stream
operations that follow from it.

`normal` brings the graph to few forms, `choose` selects the lanes of what is stored, `item` derives from them those of everything
else, `region` groups what runs over one domain, `vector` and `matrix` make stream operations of it.
"""

from tilefw_spatial.arrange.arranger import arrange, stream_program

__all__ = ["arrange", "stream_program"]
