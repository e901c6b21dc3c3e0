"""The version of ansorlite: beside records, in libraries, and in the package's metadata."""

from typing import Final

__version__: Final = "0.1.0"
