"""SDM-1: the compiler from a kernel's launch to a program of timed queues, and the machine that runs, checks and shows it.

The way of a kernel; `pipeline.py` is the same as code. Each stage is a plain function of what the one before it made.

    tile IR of one launch, its scalars and grid bound
      lower/      one traversal for all equal programs; loops become axes  -> graph.Graph        arrays over named axes
      elements    64-bit integers as pairs of words, small formats as codes -> graph.Graph        of the machine's types
      arrange/    which axes lie along lanes, which in time                 -> stream_program.StreamProgram  operations on streams
        chain/    elementwise work as chains of ALUs, for `arrange/`
      partition/  on several chips, around `arrange/`: parts and links      -> stream_program.NodeStreamProgram
      schedule/   places for arrays, a cycle for every burst                -> schedule.Schedule  the count of cycles is known
      emit        queues in order of time, gaps as NOPs (links: `link_queue`)   -> program.Program

What is known beforehand: `target` and `capabilities` (what is claimed), `machine` with `data/sdm-1.yaml` (every number and its
origin), `isa/` (the table of instructions, its meanings, its element types). Refused before anything is laid out: what needs more
than the chip's memory (`footprint`), what is beyond the compiler's own `limits`, a machine that a stage cannot serve (`supported`).

The program as a file: `container/`, as text: `text/`; from either back: `foreign`. `valid` says what is no program of the machine
at all.

What judges it, none of them knowing the compiler: `simulate/` (a burst at a time: the device that runs launches, its traces and its
counts), `tick/` (a cycle at a time, to judge the other), `check/` (every constraint derived anew from the binary). `checked` tells
after a launch what data asked for that it must not.

Towards tilefw: `plugin` (hooks), `backend`, `node_options` (the launch keywords `chips` and `split`), `page` (docs/sdm-1.md). What
stages share: `postorder`, and `index_tables` (tables in closed form).
"""
