"""A compiled model as a shared library with a C header, and back into Python."""

from typing import TYPE_CHECKING, Final

from ansorlite import lazy

if TYPE_CHECKING:
    from ansorlite.export.header import check_name, identifier
    from ansorlite.export.write import NativeModel, checksum_of, write_gpu_library, write_library

__all__ = ["NativeModel", "check_name", "checksum_of", "identifier", "write_gpu_library", "write_library"]

#: What only writing needs.
_HOMES: Final = {
    "NativeModel": "ansorlite.export.write",
    "check_name": "ansorlite.export.header",
    "checksum_of": "ansorlite.export.write",
    "identifier": "ansorlite.export.header",
    "write_gpu_library": "ansorlite.export.write",
    "write_library": "ansorlite.export.write",
}

__getattr__, __dir__ = lazy.attributes(__name__, _HOMES)
