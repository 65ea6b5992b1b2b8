"""Machine code: plain instructions below the IR, and the passes that turn selected code into final code.

The basis of all passes:

    inst          registers, slices of them, instructions, blocks, functions: slots classes in plain lists
    function_attributes  the typed attributes of a function besides its instructions
    table         a plugin's description of its instructions and registers
    promises      which instructions give the exact integers of offsets, for simulators
    function_pass a pass over each machine function: the base class of those below
    opcodes       what a plugin's passes and functions wrote, held against its table
    text          the text form, printed and parsed; `function_op` carries a function through the pass manager
    flow          control between blocks; `forward_analysis` finds what holds at the entry of each
    liveness      what is live at the edges of blocks, as sets that are easy to read: for checkers and for loops
    subregisters  the same for passes that ask often: registers divided where operands divide them, numbered
    live_peak     the most registers that a function holds at once, of all classes together

The passes, in the order in which a chip whose code is final runs them; any of them can be left out. `tilefw passes`
lists those of a target, `tilefw opt --target` runs one on text.

    dead                     what nothing needs goes away
    hoist                    what a loop computes alike in every iteration stands before it
    sink                     what only a loop needs is computed behind the guard of the loop
    early_ends               what ends more values than it makes stands right behind what it reads
    late_begins              what begins a value and ends none stands right before what reads it
    rematerialise            what a loop has no registers for is made where it is read, if it costs one instruction
    schedule                 order within blocks: `dependences` say what may change places, `list_scheduling` chooses, `pressure`
                             counts live registers, and `headroom` keeps the rest of the block within the limit
    ties                     a result that must stand in an operand's register finds the operand there
    assign_registers         `coalesce` removes copies, `allocate` places `live_ranges` in a `register_file`; what finds no place
                             makes those that stand already move, in a `movable_file`, or leaves by `spill`, as `spill_choice`
                             decides by the `spill_pressure`, for where the plugin's `spill_model` says, in `spill_slots` that
                             others have left
    waits                    waits for results that arrive later, the fewest and weakest
    wait_states              pauses where the hardware does not check

Before the waits a plugin puts real instructions in the place of those that only stood for some. Waits and wait states look at
instructions as `register_sets`. Each pass whose errors would be silent has an independent checker, which runs where options
have `verify`: `check_schedule`, `check_allocation`, `check_waits`, `check_wait_states`.
"""
