"""Arrays by name in files of NumPy's, `.npz`: the inputs and outputs of models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tilefw.api.errors import UsageError
from tilefw.cli.output import write_file

if TYPE_CHECKING:
    import numpy as np

ARRAY_FILE_LIMIT = 1 << 34  # bytes of all arrays of one file


def read_arrays(path: str) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays of an `.npz` file by name. Raises UsageError TFW0364 for any other file."""
    import zipfile

    import numpy as np

    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(one.file_size for one in archive.infolist())
        if size > ARRAY_FILE_LIMIT:
            raise ValueError(f"its arrays have {size:,} bytes")
        with np.load(path, allow_pickle=False) as found:
            return {name: found[name] for name in found.files}
    except Exception as error:  # whatever NumPy, zipfile and the decompressors meet
        raise UsageError(f"{path} is no file of arrays: {error}", code="TFW0364", help="write it with numpy.savez") from None


def write_arrays(path: str, arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
    """Write arrays by name, whatever the names are."""
    import io
    import zipfile

    import numpy as np

    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:  # numpy.savez has parameters that an output may be called like
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
    write_file(path, made.getvalue())
