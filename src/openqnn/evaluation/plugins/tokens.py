"""Plugins that turn text into tokens for language models: gpt2_tokenizer and tokenize_wikitext_2."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from openqnn.errors import InputError, LibraryError, UsageError
from openqnn.evaluation.plugins.images import EXTRA
from openqnn.evaluation.plugins.parameter_kinds import (
    kind_bool,
    kind_counts,
    kind_int,
    kind_optional,
    kind_text,
)
from openqnn.evaluation.plugins.plugin import (
    FILE,
    MEMORY,
    Context,
    Dataset,
    DatasetPlugin,
    Item,
    param,
    plugin,
)

TOKENS = "tokens"


def tokenizers_package() -> Any:
    try:
        import tokenizers
    except ImportError:
        raise LibraryError("text needs the package tokenizers, which is not installed", hint=EXTRA) from None
    return tokenizers


def byte_pairs(vocabulary: Path, merges: Path) -> Any:
    """GPT-2's tokenizer from its two files."""
    for path in (vocabulary, merges):
        if not path.is_file():
            raise InputError(f"{path}: no such file")
    try:
        return tokenizers_package().ByteLevelBPETokenizer(str(vocabulary), str(merges))
    except Exception as error:  # tokenizers raises plain exceptions
        raise InputError(f"{vocabulary}, {merges}: no vocabulary of GPT-2's tokenizer ({error})") from error


def local_tokenizer(name: str, cached: str | None) -> Any:
    """A tokenizer of a file or folder: tokenizer.json, or GPT-2's vocab.json and merges.txt."""
    place = Path(cached or name)
    if place.is_dir():
        if (place / "vocab.json").is_file() and (place / "merges.txt").is_file():
            return byte_pairs(place / "vocab.json", place / "merges.txt")
        place = place / "tokenizer.json"
    if not place.is_file():
        raise InputError(
            f"tokenizer '{cached or name}': no such file or folder",
            hint="nothing is downloaded: name a folder with tokenizer.json, or vocab.json and merges.txt",
        )
    return tokenizers_package().Tokenizer.from_file(str(place))


def windows(
    dataset: Dataset, items: Sequence[Item], tokenizer: Any, length: int, extra: Sequence[Any], *,
    positions: bool, past: int, mask: str,
) -> tuple[Item, ...]:  # fmt: skip
    """Token ids of all text, in rows of a length; what is left at the end makes no row."""
    found: list[Item] = []
    for item in items:
        path = dataset.path(item.files[0])
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{path}: this is no text file ({error})") from error
        ids = np.array(tokenizer.encode(text).ids, np.int64)
        for row in ids[: len(ids) // length * length].reshape(-1, length):
            arrays: list[Any] = [row[None], np.ones((1, past + length), mask)]
            arrays += [np.arange(length, dtype=np.int64)[None]] if positions else []
            found.append(Item(item.files, (*arrays, *extra), (), {**item.notes, TOKENS: row}))
    if items and not found:
        raise InputError(f"the text has fewer than {length} tokens", hint="a smaller seq_length")
    return tuple(found)


def past_arrays(shape: Sequence[int], count: int) -> list[Any]:
    if count and not any(shape):
        raise UsageError(f"{count} 'past' inputs need past_shape")
    return [np.zeros(tuple(shape), np.float32) for _ in range(count)]


@plugin("gpt2_tokenizer", FILE)
class Gpt2Tokenizer(DatasetPlugin):
    """Inputs in the order token ids, mask, 'past' ones."""

    vocab_file: str = param(kind_text)
    merges_file: str = param(kind_text)
    seq_length: int = param(kind_int)
    past_seq_length: int = param(kind_int)
    past_shape: tuple[int, ...] = param(kind_counts, ())
    num_past: int = param(kind_int, 0)

    def transform(self, dataset: Dataset, context: Context) -> Dataset:
        tokenizer = byte_pairs(dataset.path(self.vocab_file), dataset.path(self.merges_file))
        made = [
            windows(
                dataset, items, tokenizer, self.seq_length, past_arrays(self.past_shape, self.num_past),
                positions=False, past=self.past_seq_length, mask="int64",
            )
            for items in (dataset.items, dataset.calibration)
        ]  # fmt: skip
        return replace(dataset, items=made[0], calibration=made[1])


@plugin("tokenize_wikitext_2", MEMORY)
class TokenizeWikitext(DatasetPlugin):
    """Inputs in the order token ids, mask, positions, 'past' ones."""

    seq_length: int = param(kind_int)
    tokenizer_name: str = param(kind_text)
    past_shape: tuple[int, ...] = param(kind_counts, (0,))
    num_past: int = param(kind_int, 0)
    pos_id: bool = param(kind_bool, True)
    mask_dtype: str = param(kind_text, "float32", choices=("float32", "float16", "int32", "int64", "bool"))
    cached_path: str | None = param(kind_optional, None)

    def transform(self, dataset: Dataset, context: Context) -> Dataset:
        tokenizer = local_tokenizer(self.tokenizer_name, self.cached_path)
        made = [
            windows(
                dataset, items, tokenizer, self.seq_length, past_arrays(self.past_shape, self.num_past),
                positions=self.pos_id, past=0, mask=self.mask_dtype,
            )
            for items in (dataset.items, dataset.calibration)
        ]  # fmt: skip
        return replace(dataset, items=made[0], calibration=made[1])
