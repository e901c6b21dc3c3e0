"""Passes over what quantisers made: sums and movements of bytes where the model says floats."""
