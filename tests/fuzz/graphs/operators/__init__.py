"""How to draw a node of each operator."""
