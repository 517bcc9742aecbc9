"""Ops that cannot be said in QNN, each with the reason. Their domain is ONNX's own where none is given."""

from __future__ import annotations

from typing import Any, NoReturn

from openqnn.frontends.onnx.table import MICROSOFT, translates
from openqnn.frontends.translation import Translation

_RANDOM = "a QNN graph always gives the same result for the same input; it has no random numbers"
_STRING = "it works on strings, which QNN does not have"
_COUNT = "how many results there are depends on the data; QNN tensors have a fixed size"
_TRAINING = "it trains a model; a QNN graph only runs one"
_TREES = "classical machine learning (ai.onnx.ml) has no QNN equivalent"
_PACKED = "its packed weights are not unpacked yet"
_ODD = "its packed weights are not known, or not of the size that K, N, bits and block_size say"
_COMPILED = "it is compiled already; qnn-net-run --retrieve_context runs it, `openqnn extract` takes it out"

_DEFAULT = {
    "RandomNormal": _RANDOM,
    "RandomNormalLike": _RANDOM,
    "RandomUniform": _RANDOM,
    "RandomUniformLike": _RANDOM,
    "Bernoulli": _RANDOM,
    "Multinomial": _RANDOM,
    "StringConcat": _STRING,
    "StringNormalizer": _STRING,
    "StringSplit": _STRING,
    "RegexFullMatch": _STRING,
    "TfIdfVectorizer": "counting n-grams has no QNN equivalent",
    "ImageDecoder": "decoding image files is the application's work, before the graph",
    "NonMaxSuppression": _COUNT,
    "Det": "determinants have no QNN equivalent",
    "BitCast": "QNN cannot see the bits of a number as another type",
}
_CLASSIC = (
    "ArrayFeatureExtractor", "Binarizer", "FeatureVectorizer", "Imputer", "LinearClassifier",
    "LinearRegressor", "Normalizer", "OneHotEncoder", "SVMClassifier", "SVMRegressor", "Scaler",
    "TreeEnsemble", "TreeEnsembleClassifier", "TreeEnsembleRegressor", "ZipMap",
)  # fmt: skip
_OTHERS = {
    "ai.onnx.preview.training": dict.fromkeys(("Adagrad", "Adam", "Gradient", "Momentum"), _TRAINING),
    "ai.onnx.ml": {
        **dict.fromkeys(("CategoryMapper", "LabelEncoder", "DictVectorizer", "CastMap"), _STRING),
        **dict.fromkeys(_CLASSIC, _TREES),
    },
    MICROSOFT: {
        **dict.fromkeys(("MatMulBnb4", "GatherBlockQuantized", "QMoE"), _PACKED),
        "MatMulNBits": _ODD,
        "EPContext": _COMPILED,
    },
}


def _refusal(reason: str) -> Any:
    def refuse(t: Translation, *inputs: Any, **attributes: Any) -> NoReturn:
        t.refuse(reason)

    return refuse


for _domain, _table in {"": _DEFAULT, **_OTHERS}.items():
    for _name, _reason in _table.items():
        translates(_name, domain=_domain)(_refusal(_reason))
