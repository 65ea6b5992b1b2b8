"""Machine code that is kept on disk from process to process, beside artifacts: by its text, the processor, the LLVM at hand and the
code of core, which says how LLVM is to make it.

TILEFW_CACHE=0 keeps nothing. An entry that is damaged counts as none (runtime/compilation/cache.py has its digest).
"""

from __future__ import annotations

from tilefw.sim.compiled.native import object_of, processor


def _key(text: str, loops: bool) -> str:
    import llvmlite
    import llvmlite.binding as llvm

    from tilefw.runtime.compilation.cache import digest  # a higher room, which the simulator can do without
    from tilefw.runtime.compilation.fingerprint import fingerprint

    here = processor()
    compiler = llvmlite.__version__, llvm.llvm_version_info
    return digest("code of the simulator", fingerprint(None), text, loops, here.triple, here.name, here.flags, compiler)


def kept_object(text: str, loops: bool = False) -> bytes | None:
    """The object file of a module's text, where it is kept."""
    from tilefw.runtime.compilation.cache import disk_cache

    disk = disk_cache()
    return None if disk is None else disk.get(_key(text, loops))


def object_for(text: str, loops: bool = False) -> bytes:
    """The same, compiled where none is kept, and kept from then on."""
    from tilefw.runtime.compilation.cache import disk_cache

    found = kept_object(text, loops)
    if found is None:
        found = object_of(text, loops)
        disk = disk_cache()
        if disk is not None:
            disk.put(_key(text, loops), found)
    return found
