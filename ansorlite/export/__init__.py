"""A compiled model as a shared library with a C header, and back into Python."""
