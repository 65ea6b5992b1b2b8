"""How ONNX's operators become tile kernels: a function from a node, with its attributes and shapes, to the text of a kernel."""
