"""TFLite's schema as LiteRT publishes it, in the form of the frontend's schema.txt.

python -m tests.frontends.tflite.published_schema     # writes the file anew, from a newer LiteRT
"""

from __future__ import annotations

import importlib.util
import re
from functools import cache
from pathlib import Path

SCALARS = {
    "Int8": "b", "Uint8": "B", "Int16": "h", "Uint16": "H", "Int32": "i", "Uint32": "I", "Int64": "q",
    "Uint64": "Q", "Float32": "f", "Float64": "d", "Bool": "?",
}  # fmt: skip


@cache
def source() -> str:
    spec = importlib.util.find_spec("ai_edge_litert")
    assert spec is not None and spec.submodule_search_locations
    return (Path(spec.submodule_search_locations[0]) / "schema_py_generated.py").read_text(encoding="utf-8")


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


@cache
def enumerations() -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for name, body in re.findall(r"^class (\w+)\(object\):\n((?:    \w+ = -?\d+\n)+)", source(), re.M):
        found[name] = {key: int(value) for key, value in re.findall(r"(\w+) = (-?\d+)", body)}
    return found


@cache
def tables() -> dict[str, str]:
    """The fields of every table in order: name, a code for the type, and the default if it is not zero."""
    found: dict[str, str] = {}
    pattern = re.compile(r"^class (\w+)\(object\):\n    __slots__(.*?)(?=^def |^class )", re.M | re.S)
    for name, body in pattern.findall(source()):
        fields: dict[int, str] = {}
        for method, args, text in re.findall(
            r"    def (\w+)\(self(, j)?\):\n(.*?)(?=\n    #|\Z)", body, re.S
        ):
            offset = re.search(r"_tab\.Offset\((\d+)\)", text)
            if offset and (int(offset[1]) - 4) // 2 not in fields:
                fields[(int(offset[1]) - 4) // 2] = f"{snake(method)}:{_kind(text, bool(args))}"
        found[name] = " ".join(fields.get(i, "-") for i in range(max(fields, default=-1) + 1))
    return found


def _kind(text: str, vector: bool) -> str:
    prefix = "[" if vector else ""
    table = re.search(r"obj = (\w+)\(\)", text)
    if table:
        return f"{prefix}@{table[1]}"
    if "_tab.Union" in text:
        return "@"
    if "_tab.String" in text:
        return f"{prefix}s"
    scalar = re.search(r"number_types\.(\w+)Flags, (?:o|a) \+", text)
    assert scalar is not None, text
    code = SCALARS[scalar[1]]
    default = re.findall(r"return (.+)", text)[-1]
    plain = vector or default in ("0", "0.0", "False")
    return f"{prefix}{code}" + ("" if plain else f"={default}")


def page() -> str:
    """The file that the frontend reads."""
    enums = [f"enum {name} {' '.join(values)}" for name, values in enumerations().items()]
    return (
        "\n".join([*enums, *(f"table {name} {fields}".strip() for name, fields in tables().items())]) + "\n"
    )


if __name__ == "__main__":
    from openqnn.frontends.tflite.flatbuffer import SCHEMA_FILE

    SCHEMA_FILE.write_text(page(), encoding="utf-8")
