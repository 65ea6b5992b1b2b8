"""From a graph of arrays to sweeps: which axes of each value lie along lanes and which in time, and the sweeps that follow from it.

`normal` brings the graph to few forms, `choose` picks the lanes of what is stored, `item` derives from them those of everything
else, `region` groups what runs over one domain, `vector` and `matrix` make sweeps of it.
"""

from tilefw_spatial.arrange.arranger import arrange

__all__ = ["arrange"]
