"""The graph dialect: a model as some fourteen operations on whole tensors, before anything is a kernel.

A module holds one `func.func` whose arguments are the model's inputs and whose `func.return` gives its outputs. Values are
builtin tensors of static shape (`tensor<f32>` is one element); integers are signless, as in tile IR. Operands of one op never
broadcast: a `graph.view` says so.
"""
