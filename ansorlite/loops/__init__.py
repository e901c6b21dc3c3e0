"""Lowered loops: nodes, passes, verifier, printer, and the interpreter that defines their meaning."""
