"""Files of --custom_ops that are wrong: one message each, with the user's file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

import openqnn
from openqnn.errors import InputError, UnsupportedError
from tests.op_packages.sample import model

COMPOSITE = """import numpy as np
import openqnn

@openqnn.composite("my.domain", "ScaledTanh")
def scaled(q, x, *, factor=1.0, shift=()):
    return q.mul(q.tanh(x), factor)
"""
CUSTOM = """import numpy as np
import openqnn

@openqnn.custom_op("MyPackage", "ScaledTanh", domain="my.domain")
def scaled(x, *, factor: float = 1.0, shift: list[float] = (0.0, 0.0)):
    return factor * np.tanh(x)
"""
# What is replaced by what; the line that is named, 0 for none; and the message.
IN_COMPOSITES = [
    ("return q.mul(q.tanh(x), factor)", "return 2.5", 4, "gives float where a tensor is expected"),
    ("return q.mul", "q.mul", 4, "gives nothing where a tensor is expected"),
    ("q.tanh(x)", "nobody", 6, "NameError: name 'nobody' is not defined"),
    ("q.tanh(x)", "q.min(x, 1.0)", 6, "builder has no word 'min'.*did you mean .*minimum"),
    ("q.tanh(x)", "q('Tanh', x, axis=1)", 6, "Tanh has no parameter 'axis'"),
    ("q.tanh(x), factor", "x, np.ones(7)", 6, "do not broadcast"),
    ("factor=1.0", "gain=1.0", 4, "attribute 'factor' is not known.*known are: gain, shift"),
    ("q, x,", "q, x, y,", 4, "1 inputs given, 2 expected"),
    ("x, *, factor=1.0, shift=()", "x, factor, shift", 4, "1 inputs given, 3 expected"),
]
IN_CUSTOM_OPS = [
    ("np.tanh(x)", "x.nothing", 6, "AttributeError"),
    ("return factor", "factor", 4, "gives nothing, an array is expected"),
    ("(x, *,", "(x, y, *,", 4, "input 'y' of MyPackage::ScaledTanh is missing"),
    ("factor: float", "gain: float", 4, "attribute 'factor' is no parameter.*gain, shift"),
    (', domain="my.domain"', ', outputs=("a", "b")', 4, "gives 1 results, and 2 are declared"),
    (', domain="my.domain"', ", shape=lambda x: x", 4, "shape function raised TypeError"),
    (', domain="my.domain"', ", shape=lambda x, **_: None", 4, "shape function raised TypeError"),
    (', domain="my.domain"', ", shape=lambda x, **_: (1, 'a')", 4, "shape function raised TypeError"),
]
IN_FILES = [
    (', domain="my.domain"', ', attributes={"gain": "g"}', 4, "names the parameter 'gain'"),
    (', domain="my.domain"', ', outputs="out"', 4, "a list of different names is expected"),
    (', domain="my.domain"', ", outputs=()", 4, "a list of different names is expected"),
    (', domain="my.domain"', ', outputs=("x",)', 4, "'x' is an output and an argument"),
    (', domain="my.domain"', ', types="float32"', 4, "a list is expected, not the text 'float32'"),
    (', domain="my.domain"', ", domian=3", 4, "unexpected keyword argument 'domian'"),
    ('("MyPackage", "ScaledTanh", domain="my.domain")', "", 4, "the package of a custom op is a text"),
    ('"MyPackage", ', "3, ", 4, "the package of a custom op is a text, not 3"),
    ("float = 1.0", "float = float('nan')", 4, "default of 'factor' is nan"),
    ("float = 1.0", "str = 'much'", 4, "'factor' is a text, and QNN has none"),
    ("import numpy", "import nobody_has_this\nimport numpy", 1, "ModuleNotFoundError"),
    ("import openqnn", "import sys; sys.exit(3)", 2, "it ends the program"),
    ("def scaled(x", "def scaled(x:", 5, "invalid syntax|was never closed"),
    ("@openqnn", "#", 0, "it declares no operation"),
]


def changed(tmp_path: Path, text: str, old: str, new: str) -> Path:
    assert old in text
    path = tmp_path / "my_ops.py"
    path.write_text(text.replace(old, new, 1))
    return path


@pytest.mark.parametrize(
    ("text", "old", "new", "line", "message"),
    [*((COMPOSITE, *case) for case in IN_COMPOSITES), *((CUSTOM, *case) for case in IN_CUSTOM_OPS)],
)
def test_found_when_a_model_is_converted(
    tmp_path: Path, text: str, old: str, new: str, line: int, message: str
) -> None:
    path = changed(tmp_path, text, old, new)
    openqnn.load_custom_ops(path)
    with pytest.raises(UnsupportedError, match=f"(?s){message}") as caught:
        openqnn.convert(model())
    assert f"{path}:{line}" in str(caught.value)


@pytest.mark.parametrize(("old", "new", "line", "message"), IN_FILES)
def test_found_when_the_file_is_read(tmp_path: Path, old: str, new: str, line: int, message: str) -> None:
    path = changed(tmp_path, CUSTOM, old, new)
    with pytest.raises(InputError, match=message) as caught:
        openqnn.load_custom_ops(path)
    assert (f"{path}:{line}" if line else str(path)) in str(caught.value)


def test_a_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="it is a folder, not a file"):
        openqnn.load_custom_ops(tmp_path)


def test_more_results_than_the_node_has(tmp_path: Path) -> None:
    path = changed(tmp_path, COMPOSITE, "q.mul(q.tanh(x), factor)", "q.tanh(x), q.tanh(x)")
    openqnn.load_custom_ops(path)
    with pytest.warns(openqnn.OpenQnnWarning, match="gives 2 results, and the node has 1"):
        openqnn.convert(model())
