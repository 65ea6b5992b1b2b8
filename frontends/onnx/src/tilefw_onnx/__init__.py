"""ONNX for tilefw: nodes as tile kernels (`lowerings/`), and whole models as graphs of kernels (`reader.py`)."""
