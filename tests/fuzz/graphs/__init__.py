"""Random ONNX graphs, held against onnxruntime node by node. ``python -m tests.fuzz.graphs --help``."""
