"""The models: one family a file, plain PyTorch without any weights to download."""
