"""SDM-1: the compiler from a kernel's launch to a program of timed queues, and the machine that runs, checks and shows it.

The stages; `pipeline.py` is the same as code. Each is a plain function of what the one before it made.

    tile IR of one launch, its scalars and grid bound
      lower/      programs with equal control flow together; loops become axes -> graph.Graph                     arrays over axes
      link/       graphs of successive launches as one, arrays stay on chip    -> graph.Graph                     still arrays
      elements    64-bit integers as pairs of words, small formats as codes    -> graph.Graph                     machine types
      arrange/    which axes lie along lanes, which in time                    -> stream_program.StreamProgram    stream operations
        chain/    elementwise operations as chains of ALUs, for `arrange/`
      partition/  on several chips, around `arrange/`: shares and links        -> stream_program.NodeStreamProgram
      schedule/   memory for arrays, a cycle for every burst                   -> schedule.ChipSchedule           cycles are known
      emit        queues in order of time, gaps as NOPs (links: `link_queue`)  -> program.SpatialProgram

Data that these read: `target` (what is claimed), `machine` with `data/sdm-1.yaml` (every number and its origin),
`isa/` (the table of instructions, their semantics, element types). Refused before anything is laid out: what needs more than the
chip's memory (`footprint`), what is beyond the compiler's own `limits`, a machine that a stage cannot serve (`supported`).

The program as a file: `container/`, as text: `text/`; from either back: `foreign`. `valid` has the errors of what is no program of
the machine at all.

Simulators and checker; none imports the compiler: `simulate/` (a burst at a time: the device that runs launches, its traces and its
counts), `tick/` (a cycle at a time, to check the other), `check/` (every constraint derived anew from the binary). `checked`
reports after a launch which data-dependent accesses were out of bounds.

The interface to tilefw: `plugin` (hooks), `backend`, `page` (docs/sdm-1.md).
Shared by stages: `postorder`, and `index_tables` (tables in closed form).
"""
