"""Layers of well-known networks on the CPU, beside what a user would take instead: `python -m benchmarks.networks`.

`layers.py` lists the layers as data. `xla_programs.py` (xlamini and JAX), `onnx_models.py` and `numpy_programs.py` make
programs of them. Each library runs in a process of its own (`worker.py`), in its own environment, alternately.
"""
