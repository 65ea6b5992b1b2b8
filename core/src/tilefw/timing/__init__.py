"""How long machine code takes on a chip: a model of time, apart from the simulator of results, that reads what waves executed.

A kernel's way through the package:

    chip_file      a chip's numbers, each with its source, from a YAML file
    chip_timing    what a plugin says of its chip with them: pipes, levels of memory, the cost of each instruction
    streams        what each wave of a recorded launch executed, instruction by instruction
    sharing        what workgroups that run side by side share of memory
    memory_levels  which level of memory answers each access
    processor      one processor with its resident workgroups, event by event
    phases         copies of an engine, and the waves that wait for them phase by phase
    periods        loops whose turns are alike: a few are timed
    launch_time    a whole launch: rounds of workgroups, the tail, the start
    outline        a whole launch without machine code: what each workgroup computes and moves, on a product's figures
    power          the clock that a power limit leaves
    launch_profile a profile as data, as text, as JSON
    profile        makes one: cycles, what limits them, roofline, stalls by line and instruction
"""
