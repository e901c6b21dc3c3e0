"""ONNX's own backend tests, all of them, and what became of each."""
