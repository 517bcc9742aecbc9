"""Operators that cannot be said in QNN, each with the reason."""

from __future__ import annotations

from typing import Any, Final, NoReturn

from openqnn.frontends.tflite.table import TABLE
from openqnn.frontends.tflite.translation import TfliteTranslation as Translation

_TABLES = "it looks up texts or hashes; QNN graphs compute with numbers only"
_COUNT = "how many results it has depends on the data; QNN needs every shape when the graph is built"
_COMPLEX = "QNN has no complex numbers"
_RANDOM = "a QNN graph always gives the same result for the same input; it has no random numbers"
_BITS = "QNN has no operations on the bits of integers"
REFUSALS: Final = {
    "HASHTABLE": _TABLES, "HASHTABLE_FIND": _TABLES, "HASHTABLE_IMPORT": _TABLES, "HASHTABLE_SIZE": _TABLES,
    "HASHTABLE_LOOKUP": _TABLES, "LSH_PROJECTION": _TABLES, "SKIP_GRAM": _TABLES,
    "EMBEDDING_LOOKUP_SPARSE": _TABLES, "WHERE": _COUNT, "UNIQUE": _COUNT, "NON_MAX_SUPPRESSION_V4": _COUNT,
    "NON_MAX_SUPPRESSION_V5": _COUNT, "IMAG": _COMPLEX, "REAL": _COMPLEX, "COMPLEX_ABS": _COMPLEX,
    "RFFT2D": _COMPLEX, "RANDOM_STANDARD_NORMAL": _RANDOM, "RANDOM_UNIFORM": _RANDOM, "MULTINOMIAL": _RANDOM,
    "STABLEHLO_RNG_BIT_GENERATOR": _RANDOM, "BITWISE_XOR": _BITS, "RIGHT_SHIFT": _BITS, "BITCAST": _BITS,
    "STABLEHLO_SHIFT_LEFT": _BITS, "CONCAT_EMBEDDINGS": "no version of LiteRT computes it",
    "STABLEHLO_CUSTOM_CALL": "it calls a function that is not part of the model",
    "DELEGATE": "it was compiled for one kind of device already",
}  # fmt: skip


_NAMED: Final = ("STABLEHLO_CUSTOM_CALL",)  # their translators name more


def _refusal(reason: str) -> Any:
    def refuse(t: Translation, *inputs: Any) -> NoReturn:
        t.refuse(reason)

    return refuse


for _name, _reason in REFUSALS.items():
    if _name in _NAMED:
        continue
    TABLE.translates(_name)(_refusal(_reason))
