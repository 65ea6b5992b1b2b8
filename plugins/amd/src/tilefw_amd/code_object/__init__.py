"""HSA code objects: ELF files with kernel descriptors and metadata, read and written (LLVM's AMDGPUUsage, "Code Object").

    found = code_object.read(data, "kernel.hsaco")     # anyone's: Triton's, LLVM's, AMD's
    found.kernels[0].descriptor.user_sgpr_count        # the 64 bytes that start it, as named fields
    found.kernels[0].metadata.arguments                # what a runtime must pass

`elf` knows ELF alone, `descriptor` the kernel descriptor, `metadata` the note, `reader` and `writer` whole files.
"""

from tilefw_amd.code_object.reader import CodeObject, DeviceFunction, ImageRelocation, ObjectKernel, read
from tilefw_amd.code_object.writer import CodeObjectWriter, OutputSection, OutputSymbol

__all__ = [
    "CodeObject", "ImageRelocation", "DeviceFunction", "ObjectKernel", "OutputSection", "OutputSymbol", "CodeObjectWriter", "read"
]
