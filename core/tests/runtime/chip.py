"""A chip of the tests' own: its machine code is the name of a Python function over bytes, so that every step around it shows."""

from __future__ import annotations

from tilefw.api import ALL_CHECKS, Artifact, Backend, Entry, Finding, LaunchReport, Parameter, Place

POINTERS = ("x_ptr", "out_ptr")


class Memory:
    """A device with allocations as byte arrays and a log of what was asked of it."""

    name = "toy"
    executor = "sim"
    assembled = False
    checks = ALL_CHECKS

    def __init__(self):
        self.allocations, self.log, self.next = {}, [], 1

    def allocate(self, nbytes, *, label="", readonly=False, element=""):
        handle, self.next = self.next, self.next + 1
        self.allocations[handle] = bytearray(nbytes)
        self.log.append(("allocate", nbytes, label, readonly, element))
        return handle

    def free(self, handle):
        del self.allocations[handle]

    def write(self, handle, data, offset=0):
        raw = bytes(data)
        self.allocations[handle][offset : offset + len(raw)] = raw

    def read(self, handle, nbytes, offset=0):
        return bytes(self.allocations[handle][offset : offset + nbytes])

    def load(self, artifact):
        self.log.append(("load", artifact.text))
        return artifact

    def launch(self, module, entry, grid, args, options):
        self.log.append(("launch", entry, tuple(grid), list(args), options))
        return BEHAVIOURS[module.text](self, args)

    def memory_info(self):
        return {"allocations": len(self.allocations)}


def copy_bytes(device, args):
    """out[i] = x[i] over the bytes that both have from their offsets on."""
    x, out = args[:2]
    source = bytes(device.allocations[x.handle][x.offset :])
    count = min(len(source), len(device.allocations[out.handle]) - out.offset)
    device.allocations[out.handle][out.offset : out.offset + count] = source[:count]
    return LaunchReport(counters={"instructions": count})


def find_fault(device, args):
    copy_bytes(device, args)
    place = Place("k.s", 3, text="ld r0, [r1]")
    finding = Finding("bounds", "TFW0801", "a load past the end", "ld r0, [r1]", place, count=2, lane=5)
    return LaunchReport(findings=(finding, Finding("leftovers", "TFW0802", "only a warning", severity="warning")))


def warn_only(device, args):
    return LaunchReport(findings=(Finding("leftovers", "TFW0802", "only a warning", severity="warning"),))


def crash(device, args):
    raise ZeroDivisionError("in the simulator")


BEHAVIOURS = {"copy": copy_bytes, "fault": find_fault, "warn": warn_only, "crash": crash}


class ToyBackend(Backend):
    """Emits the behaviour that the option `behaviour` names; counts its work in `made`."""

    made = []

    def pipeline(self, options):
        return []

    def emit(self, module, options):
        self.made.append(options)
        if options.extra.get("behaviour") == "bug":
            raise KeyError("in emit")
        return Artifact(self.target.name, "toy", options.extra.get("behaviour", "copy"), (entry_of(),))

    def parse(self, data, name):
        return Artifact(self.target.name, "toy", data.decode(), (entry_of(), entry_of("second")))

    def simulator(self):
        return Memory()


def entry_of(name="k"):
    pointers = [Parameter(p, "pointer", "fp32", 8 * i, 8, 8, readonly=None) for i, p in enumerate(POINTERS)]
    return Entry(name, (*pointers, Parameter("n", "scalar", "int32", 16, 4, 4), Parameter("scratch", "pointer", "uint8", 24, 8, 8,
                 hidden="null_pointer")), (32, 1, 1))
