"""The verbs: ``from_onnx``, ``tune``, ``compile``, each in a module with no more imports than it needs."""
