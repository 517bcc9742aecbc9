"""Plugins for translation with OpenNMT's models: onmt_preprocess and onmt_postprocess."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from openqnn.errors import InputError, LibraryError, UsageError
from openqnn.evaluation.plugins.images import EXTRA
from openqnn.evaluation.plugins.parameter_kinds import kind_bool, kind_int, kind_optional, kind_text
from openqnn.evaluation.plugins.plugin import (
    FILE,
    Context,
    Item,
    PostprocessPlugin,
    PreprocessPlugin,
    Result,
    param,
    plugin,
)

UNKNOWN, PADDING, BEGIN, END = "<unk>", "<blank>", "<s>", "</s>"
SETTINGS = "onmt"


def read_vocabulary(path: Path, side: str, trusted: bool) -> list[str]:
    """Tokens in the order of their numbers: a line each, JSON, or with the user's word a pickle of these."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    content: Any
    if path.suffix == ".json":
        content = json.loads(data)
    elif path.suffix == ".txt":
        content = data.decode("utf-8").splitlines()
    elif not trusted:
        raise UsageError(
            f"{path}: a pickle file can run any code when it is loaded",
            hint="-trust if you know where it comes from; a .txt with a token in each line needs no trust",
        )
    else:
        content = _unpickled(path, data)
    return _tokens(path, content, side)


def _unpickled(path: Path, data: bytes) -> Any:
    try:
        return pickle.loads(data)
    except Exception as error:  # a pickle raises whatever it likes
        raise InputError(
            f"{path}: this is no pickle that can be read ({type(error).__name__}: {error})"
        ) from error


def _tokens(path: Path, content: Any, side: str) -> list[str]:
    if isinstance(content, Mapping) and side in content:
        content = content[side]
    if isinstance(content, Mapping) and all(isinstance(n, int) for n in content.values()):
        return [str(t) for t, _ in sorted(content.items(), key=lambda pair: pair[1])]
    if isinstance(content, list) and all(isinstance(t, str) for t in content):
        return content
    raise InputError(
        f"{path}: no tokens in it", hint="a list of tokens, numbers by token, or these by 'src' and 'tgt'"
    )


def sentence_pieces(path: str | None) -> Any:
    if not path:
        raise UsageError("sentencepiece_model_path is needed unless skip_sentencepiece is True")
    try:
        import sentencepiece
    except ImportError:
        raise LibraryError("the package sentencepiece is not installed", hint=EXTRA) from None
    if not Path(path).is_file():
        raise InputError(f"{path}: no such file")
    try:
        return sentencepiece.SentencePieceProcessor(model_file=path)
    except Exception as error:  # it raises RuntimeError and others
        raise InputError(f"{path}: this is no model of sentencepiece") from error


@plugin("onmt_preprocess", FILE)
class OnmtPreprocess(PreprocessPlugin):
    """Inputs in the order token ids [1, src_seq_len], length [1]. Items are files with a sentence each."""

    vocab_path: str = param(kind_text)
    src_seq_len: int = param(kind_int, 128)
    skip_sentencepiece: bool = param(kind_bool, True)
    sentencepiece_model_path: str | None = param(kind_optional, None)

    def gather(self, items: Sequence[Item], context: Context) -> list[Item]:
        tokens = read_vocabulary(Path(self.vocab_path), "src", context.trust)
        numbers = {token: i for i, token in enumerate(tokens)}
        pieces = None if self.skip_sentencepiece else sentence_pieces(self.sentencepiece_model_path)
        return [self._numbered(item, numbers, pieces, context) for item in items]

    def _numbered(self, item: Item, numbers: Mapping[str, int], pieces: Any, context: Context) -> Item:
        text = context.dataset.path(item.files[0]).read_text(encoding="utf-8").strip()
        words = text.split() if pieces is None else pieces.encode(text, out_type=str)
        unknown = numbers.get(UNKNOWN, 0)
        found = [numbers.get(word, unknown) for word in words][: self.src_seq_len]
        ids = np.full((1, self.src_seq_len), numbers.get(PADDING, 1), np.int32)
        ids[0, : len(found)] = found
        settings = {"vocab_path": self.vocab_path, "skip": self.skip_sentencepiece}
        return item.with_arrays([ids, np.array([len(found)], np.int32)], **{SETTINGS: settings})


@plugin("onmt_postprocess", FILE)
class OnmtPostprocess(PostprocessPlugin):
    """The translation as text, up to the end of the sentence. Outputs are token ids, or scores of them."""

    sentencepiece_model_path: str = param(kind_text)
    unrolled_count: int = param(kind_int, 26)
    vocab_path: str | None = param(kind_optional, None)
    skip_sentencepiece: bool | None = param(kind_bool, None)

    def gather(self, results: Sequence[Result], context: Context) -> list[Result]:
        if not results:
            return []
        known = results[0].item.notes.get(SETTINGS, {})
        path = self.vocab_path or known.get("vocab_path")
        if not path:
            raise UsageError("onmt_postprocess needs vocab_path where onmt_preprocess did not run")
        tokens = read_vocabulary(Path(path), "tgt", context.trust)
        skip = known.get("skip", True) if self.skip_sentencepiece is None else self.skip_sentencepiece
        pieces = None if skip else sentence_pieces(self.sentencepiece_model_path)
        return [Result(r.item, r.arrays, self._text(r, tokens, pieces)) for r in results]

    def _text(self, result: Result, tokens: Sequence[str], pieces: Any) -> str:
        array = np.asarray(result.arrays[0])
        ids = (
            array.argmax(-1) if array.dtype.kind == "f" and array.shape[-1] == len(tokens) else np.rint(array)
        )
        words: list[str] = []
        for number in ids.reshape(-1).astype(np.int64)[: self.unrolled_count]:
            word = tokens[int(number)] if 0 <= number < len(tokens) else UNKNOWN
            if word == END:
                break
            if word not in (BEGIN, PADDING):
                words.append(word)
        return " ".join(words) if pieces is None else str(pieces.decode(words))
