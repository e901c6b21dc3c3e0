"""Tuning: the loop that joins scheduler, strategies, measurement and records; what it tells and what it hands back."""
