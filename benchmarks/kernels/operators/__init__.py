"""What is computed, said four times: in te, numpy, PyTorch and ONNX. Tests and every run hold them against each other."""
