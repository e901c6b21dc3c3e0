"""Long runs that try to make ansorlite give wrong values or lose something: ``docs/reliability.md``."""
