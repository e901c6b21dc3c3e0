"""Modules: several functions by name, and one that calls them: tensor computations among functions from outside."""
