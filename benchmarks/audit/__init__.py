"""Every operator that may run in Python, beside onnxruntime, with random attributes and inputs."""
