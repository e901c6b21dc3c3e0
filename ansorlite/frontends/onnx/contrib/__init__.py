"""Operators of onnxruntime's own ("contrib operators", domain ``com.microsoft``), said in standard ones.

Its optimiser, its quantisers and the exporters of language models write them. Their definitions are in onnxruntime's
``ContribOperators.md``; the tests compare each with onnxruntime.
"""
