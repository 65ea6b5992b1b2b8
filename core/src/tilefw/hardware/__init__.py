"""Chips themselves as devices: over a vendor's driver library, which is opened when it is first needed, without any build step.

`library` opens a shared library and finds its functions, `driver` is what a plugin makes of one, `search` finds the card that runs
a target's code, `card` is the `tilefw.api.Device` over a driver, `completion` a launch that may still run, `failures` what a
driver's errors mean for a launch. `processor_device` is the
device whose code runs in this process, `traps` what that code gives up with, `interruption` how Ctrl-C reaches it.
"""
