"""Facts of a computation that do not depend on any schedule: each a small pure function."""
