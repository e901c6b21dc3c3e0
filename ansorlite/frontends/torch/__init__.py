"""PyTorch: ``torch.compile(module, backend="ansorlite")``. Imports torch, so nothing else of ansorlite imports this."""
