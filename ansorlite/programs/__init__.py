"""One program of a task: compiled to object code, as bytes, and as a callable."""
