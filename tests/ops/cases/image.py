"""Colour formats."""

from tests.ops.database import case, f

PIXELS = {"low": 0.0, "high": 255.0}

CASES = [
    case("ArgbToRgb", f(1, 2, 3, 4), reverse_output=False),
    case("ArgbToRgb", f(1, 2, 3, 4), input_order="RGBA", reverse_output=True),
    case("Nv12ToRgb", f(1, 4 * 6 * 3 // 2, **PIXELS), shape=(1, 4, 6, 3), output_order="RGB"),
    case("Nv12ToRgb", f(2, 4 * 2 * 3 // 2, **PIXELS), shape=(2, 4, 2, 3), output_order="BGR"),
    case("Nv21ToRgb", f(1, 4 * 6 * 3 // 2, **PIXELS), shape=(1, 4, 6, 3), output_order="RGB"),
    case("Nv21ToRgb", f(1, 2 * 4 * 3 // 2, **PIXELS), shape=(1, 2, 4, 3), output_order="BGR"),
]
