"""The built-in CPU backend: a graph as an ONNX model that ONNX Runtime executes."""
