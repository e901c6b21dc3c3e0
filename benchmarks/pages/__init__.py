"""The pages of performance, one for each kind of machine, each from one command.

```
python -m benchmarks.pages                 # this machine's kind
python -m benchmarks.pages --kind avx2     # with AVX-512: as if there were AVX2 alone, for ours and for the others
```

It runs ``benchmarks.kernels`` with 64 trials, then with 200, and ``benchmarks.models``, each in a process of its own, and writes
the page. Rows and measurements are in a folder for each kind, which git does not see; the same command goes on from there.
"""
