"""Both ways with aimet-onnx, which lives in an environment of its own."""
