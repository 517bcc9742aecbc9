"""The two small steps around the first example: read the sample digit, and judge the result."""

from __future__ import annotations

import sys

import numpy as np
import onnx
import onnxruntime

SHADES = " .:-=+*#%@"
TOLERANCE = 1e-3


def read(tensor_file: str, npy_file: str) -> None:
    """Turn an ONNX tensor into a .npy file, and draw it."""
    image = onnx.numpy_helper.to_array(onnx.load_tensor(tensor_file))
    np.save(npy_file, image)
    for row in image[0, 0, ::2] / image.max():
        print("  " + "".join(SHADES[int(9 * pixel)] for pixel in row))


def compare(model_file: str, input_file: str, output_file: str) -> None:
    """Name the digit, and compare the scores with those of ONNX Runtime on the source model."""
    ours = np.load(output_file)
    session = onnxruntime.InferenceSession(model_file, providers=["CPUExecutionProvider"])
    theirs = np.asarray(session.run(None, {"Input3": np.load(input_file)})[0])
    error = float(np.abs(ours - theirs).max() / np.abs(theirs).max())
    print(f"the digit is a {ours.argmax()} (ONNX Runtime on the source model: {theirs.argmax()})")
    print(f"largest relative error: {error:.1e}")
    if ours.argmax() != theirs.argmax() or not error <= TOLERANCE:
        sys.exit(f"error: the numbers differ by more than {TOLERANCE:.0e}")


if __name__ == "__main__":
    {"read": read, "compare": compare}[sys.argv[1]](*sys.argv[2:])
