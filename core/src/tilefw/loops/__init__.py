"""The kit for machines without lanes: tile IR becomes loops over elements, on what little such a machine must bring.

A processor, a DSP or a C compiler executes one program instance after another. `LoopMachine` is what its plugin brings: constants,
rows, loads and stores, loops. `lower_function` does the rest, a concept a file: which values are kept in memory (`plan`), what an
element of a value is at an index (`elements`, `index_map`), which memory an access touches (`access`), what may move (`effects`),
reductions and scans (`combine`), products (`product`).
"""
