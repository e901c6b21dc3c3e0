"""Builders and runners on the nodes of a Ray cluster. The engine is Ray; what it carries are text, bytes and numbers."""
