"""How each ONNX operator is said in ``topi``: one table row per operator.

A converter takes a node and gives the name of the value that is its (first) result, or one name for each result.
"""
