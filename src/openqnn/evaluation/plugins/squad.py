"""Plugins for SQuAD: examples out of its JSON file, features for BERT, answers, exact match and F1."""

from __future__ import annotations

import json
import re
import string
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from openqnn.errors import InputError, UsageError
from openqnn.evaluation.plugins.parameter_kinds import (
    kind_bool,
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
    MetricPlugin,
    PostprocessPlugin,
    PreprocessPlugin,
    Result,
    param,
    plugin,
)
from openqnn.evaluation.plugins.tokens import tokenizers_package
from openqnn.ir import Array

EXAMPLE, FEATURE, PACKED = "squad_example", "squad_feature", "squad_packed"
ARTICLES = re.compile(r"\b(a|an|the)\b")
Answer = tuple[float, str]


@dataclass(frozen=True, slots=True)
class Example:
    """A question about a context, with the answers that count as right; none where there is no answer."""

    id: str
    question: str
    context: str
    answers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Feature:
    """A window of an example as BERT reads it. `offsets` are where each token stands in the context."""

    example: Example
    ids: tuple[int, ...]
    segments: tuple[int, ...]
    offsets: tuple[tuple[int, int] | None, ...]


def read_examples(path: Path, version: int) -> Iterator[Example]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        for article in content["data"]:
            for paragraph in article["paragraphs"]:
                for asked in paragraph["qas"]:
                    if version == 1 and asked.get("is_impossible"):
                        continue
                    answers = tuple(dict.fromkeys(a["text"] for a in asked.get("answers", ())))
                    yield Example(str(asked["id"]), asked["question"].strip(), paragraph["context"], answers)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: this is no file of SQuAD ({type(error).__name__}: {error})") from error


@plugin("create_squad_examples")
class CreateSquadExamples(DatasetPlugin):
    """An item for each question of the JSON files that the input list names."""

    squad_version: int = param(kind_int, 1, choices=(1, 2))
    max_inputs: int = param(kind_int, -1, only=MEMORY)
    max_calib: int = param(kind_int, -1, only=MEMORY)

    def transform(self, dataset: Dataset, context: Context) -> Dataset:
        items = self._examples(dataset, dataset.items)
        chosen = self._examples(dataset, dataset.calibration) if dataset.calibration else ()
        if not context.memory:
            _write(context.folder / "squad_examples.json", items)
        most, calib = self.max_inputs, self.max_calib
        return replace(
            dataset,
            items=items if most is None or most < 0 else items[:most],
            calibration=chosen if calib is None or calib < 0 else chosen[:calib],
        )

    def _examples(self, dataset: Dataset, items: Sequence[Item]) -> tuple[Item, ...]:
        return tuple(
            Item(item.files, (), (), {EXAMPLE: example})
            for item in items
            for example in read_examples(dataset.path(item.files[0]), self.squad_version)
        )


def _write(path: Path, items: Sequence[Item]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    examples = [item.notes[EXAMPLE] for item in items]
    rows = [
        {"id": e.id, "question": e.question, "context": e.context, "answers": list(e.answers)}
        for e in examples
    ]
    path.write_text(json.dumps(rows), encoding="utf-8")


def word_pieces(place: str, *, lower: bool = True) -> Any:
    """BERT's tokenizer from a vocab.txt or the folder of one."""
    path = Path(place)
    path = path / "vocab.txt" if path.is_dir() else path
    if not path.is_file():
        raise InputError(
            f"vocabulary '{place}': no such file or folder",
            hint="nothing is downloaded: name a folder with the vocabulary's vocab.txt",
        )
    try:
        return tokenizers_package().BertWordPieceTokenizer(str(path), lowercase=lower)
    except Exception as error:  # tokenizers raises plain exceptions
        raise InputError(f"{path}: this is no vocabulary ({error})") from error


def features_of(example: Example, tokenizer: Any, length: int, query: int, stride: int) -> Iterator[Feature]:
    """[CLS] question [SEP] window of the context [SEP], window after window."""
    question = tokenizer.encode(example.question, add_special_tokens=False).ids[:query]
    context = tokenizer.encode(example.context, add_special_tokens=False)
    first, last = tokenizer.token_to_id("[CLS]"), tokenizer.token_to_id("[SEP]")
    room = length - len(question) - 3
    if room < 1 or stride < 1:
        raise UsageError(f"max_seq_length {length} leaves no room for a context", hint="a longer one")
    start = 0
    while True:
        ids, offsets = context.ids[start : start + room], context.offsets[start : start + room]
        head = [first, *question, last]
        yield Feature(
            example,
            (*head, *ids, last),
            (*[0] * len(head), *[1] * (len(ids) + 1)),
            (*[None] * len(head), *offsets, None),
        )
        if start + room >= len(context.ids):
            return
        start += min(stride, room)


def feature_arrays(feature: Feature, length: int, mask_type: str | None) -> list[Array]:
    """Token ids, mask, segments."""
    count = len(feature.ids)
    ids, segments = (np.zeros((1, length), np.int64) for _ in range(2))
    ids[0, :count], segments[0, :count] = feature.ids, feature.segments
    mask = np.zeros((1, length), np.int64)
    mask[0, :count] = 1
    kind = (mask_type or "").lower()
    if kind in ("boolean", "bool"):
        return [ids, mask.astype(bool), segments]
    return [ids, mask, segments]


def features_of_items(
    items: Sequence[Item], vocabulary: str, length: int, query: int, stride: int, mask_type: str | None,
    lower: bool = True,
) -> list[Item]:  # fmt: skip
    tokenizer = word_pieces(vocabulary, lower=lower)
    found: list[Item] = []
    for item in items:
        if EXAMPLE not in item.notes:
            raise UsageError(
                "SQuAD's features need its examples", hint="dataset plugin create_squad_examples"
            )
        for feature in features_of(item.notes[EXAMPLE], tokenizer, length, query, stride):
            arrays = feature_arrays(feature, length, mask_type)
            found.append(Item(item.files, tuple(arrays), (), {**item.notes, FEATURE: feature}))
    return found


def packed(items: Sequence[Item], length: int, most: int) -> list[Item]:
    """Several features in one row: ids and segments in a line, a mask that numbers them, positions."""
    made: list[list[Feature]] = []
    for feature in sorted((i.notes[FEATURE] for i in items), key=lambda f: -len(f.ids)):
        room = (g for g in made if len(g) < most and sum(len(f.ids) for f in g) + len(feature.ids) <= length)
        group = next(room, None)
        if group is None:
            made.append([feature])
        else:
            group.append(feature)
    return [_packed_item(group, length, items[0].files) for group in made]


def _packed_item(group: Sequence[Feature], length: int, files: tuple[str, ...]) -> Item:
    ids, mask, segments, positions = (np.zeros((1, length), np.int64) for _ in range(4))
    start = 0
    for number, feature in enumerate(group, 1):
        own = slice(start, start + len(feature.ids))
        ids[0, own], segments[0, own], mask[0, own] = feature.ids, feature.segments, number
        positions[0, own] = np.arange(len(feature.ids))
        start += len(feature.ids)
    return Item(files, (ids, mask, segments, positions), (), {PACKED: tuple(group)})


@plugin("squad_read", FILE)
class SquadRead(PreprocessPlugin):
    """Inputs in the order token ids, mask, segments (and positions where features are packed)."""

    vocab_path: str = param(kind_text)
    max_seq_length: int = param(kind_int, 384)
    max_query_length: int = param(kind_int, 64)
    doc_stride: int = param(kind_int, 128)
    packing_strategy: bool = param(kind_bool, False)
    max_sequence_per_pack: int = param(kind_int, 3)
    mask_type: str | None = param(kind_optional, None, choices=(None, "Boolean", "Compressed"))
    compressed_mask_length: int | None = param(kind_int, None)

    def gather(self, items: Sequence[Item], context: Context) -> list[Item]:
        found = features_of_items(
            items,
            self.vocab_path,
            self.max_seq_length,
            self.max_query_length,
            self.doc_stride,
            self.mask_type,
        )
        if self.packing_strategy:
            found = packed(found, self.max_seq_length, self.max_sequence_per_pack)
        if self.mask_type == "Compressed":
            found = [self._compressed(item) for item in found]
        return found

    def _compressed(self, item: Item) -> Item:
        """Instead of the mask the lengths of the sequences in a row, filled up with zeros."""
        if self.compressed_mask_length is None:
            raise UsageError("squad_read: mask_type Compressed needs compressed_mask_length")
        features = item.notes.get(PACKED) or (item.notes[FEATURE],)
        lengths = np.zeros((1, self.compressed_mask_length), np.int64)
        lengths[0, : len(features)] = [len(f.ids) for f in features][: self.compressed_mask_length]
        return item.with_arrays([item.arrays[0], lengths, *item.arrays[2:]])


@plugin("squad_preprocess", MEMORY)
class SquadPreprocess(PreprocessPlugin):
    """Features by squad_read's defaults; the vocabulary is that of the metric squad_eval."""

    mask_type: str | None = param(kind_optional, None, choices=(None, "bool"))

    def gather(self, items: Sequence[Item], context: Context) -> list[Item]:
        vocabulary = str(context.dataset.extras.get("vocabulary", ""))
        if not vocabulary:
            raise UsageError("squad_preprocess needs a vocabulary", hint="metric squad_eval: vocabulary")
        lower = bool(context.dataset.extras.get("do_lower_case", True))
        return features_of_items(items, vocabulary, 384, 64, 128, self.mask_type, lower)


def scores_of(result: Result) -> Iterator[tuple[Feature, Array, Array]]:
    """Start and end scores of each feature: two outputs, or one with both in its last axis."""
    arrays = [np.asarray(a, np.float64) for a in result.arrays]
    if len(arrays) == 1 and arrays[0].shape[-1] == 2:
        arrays = [arrays[0][..., 0], arrays[0][..., 1]]
    if len(arrays) < 2:
        raise InputError("SQuAD needs start and end scores: two outputs, or one whose last axis is 2")
    start, end = (a.reshape(-1) for a in arrays[:2])
    at = 0
    for feature in result.item.notes.get(PACKED) or (result.item.notes[FEATURE],):
        count = len(feature.ids)
        yield feature, start[at : at + count], end[at : at + count]
        at += count if PACKED in result.item.notes else 0


def best_answer(
    scored: Sequence[tuple[Feature, Array, Array]], best: int, longest: int, nothing: bool
) -> str:
    """The text of the best span over all windows; "" where no answer beats none."""
    found: list[Answer] = []
    empty = min((float(s[0] + e[0]) for _, s, e in scored), default=0.0)
    for feature, start, end in scored:
        ends = np.argsort(-end, kind="stable")[:best]
        for i in np.argsort(-start, kind="stable")[:best]:
            found += _spans(feature, int(i), ends, start, end, longest)
    chosen = max(found, default=(-np.inf, ""))
    return "" if nothing and empty > chosen[0] else chosen[1]


def _spans(feature: Feature, i: int, ends: Array, start: Array, end: Array, longest: int) -> Iterator[Answer]:
    first = feature.offsets[i]
    for j in map(int, ends):
        last = feature.offsets[j]
        if first is not None and last is not None and i <= j < i + longest:
            yield float(start[i] + end[j]), feature.example.context[first[0] : last[1]]


def answered(results: Sequence[Result], best: int, longest: int, nothing: bool = False) -> list[Result]:
    """A result for each example, with the text of its answer."""
    by_example: dict[str, list[tuple[Feature, Array, Array]]] = {}
    for result in results:
        for feature, start, end in scores_of(result):
            by_example.setdefault(feature.example.id, []).append((feature, start, end))
    return [
        Result(
            Item((), (), (), {EXAMPLE: scored[0][0].example}), (), best_answer(scored, best, longest, nothing)
        )
        for scored in by_example.values()
    ]


@plugin("bert_predict", FILE)
class BertPredict(PostprocessPlugin):
    """The answer to each question from the scores of its windows."""

    vocab_path: str = param(kind_text)
    max_seq_length: int = param(kind_int, 384)
    doc_stride: int = param(kind_int, 128)
    max_query_length: int = param(kind_int, 64)
    n_best_size: int = param(kind_int, 20)
    max_answer_length: int = param(kind_int, 30)
    packing_strategy: bool = param(kind_bool, False)

    def gather(self, results: Sequence[Result], context: Context) -> list[Result]:
        return answered(results, self.n_best_size, self.max_answer_length)


@plugin("squad_postprocess", MEMORY)
class SquadPostprocess(PostprocessPlugin):
    """Checks that there are scores for each feature; squad_eval makes answers of them."""

    packing_strategy: bool = param(kind_bool, False)

    def process(self, result: Result, context: Context) -> Result:
        list(scores_of(result))
        return result


def plain(text: str) -> str:
    """Lower case, no punctuation, no articles, single spaces: as SQuAD's own script compares."""
    bare = "".join(c for c in text.lower() if c not in string.punctuation)
    return " ".join(ARTICLES.sub(" ", bare).split())


def exact(answer: str, truths: Sequence[str]) -> float:
    return float(any(plain(answer) == plain(truth) for truth in truths or ("",)))


def f1(answer: str, truths: Sequence[str]) -> float:
    return max(_f1(plain(answer).split(), plain(truth).split()) for truth in truths or ("",))


def _f1(found: Sequence[str], truth: Sequence[str]) -> float:
    shared = sum((Counter(found) & Counter(truth)).values())
    if not found or not truth:
        return float(found == truth)
    return 2 * shared / (len(found) + len(truth)) if shared else 0.0


def squad_scores(results: Sequence[Result]) -> Mapping[str, float]:
    """Percentages over all examples."""
    pairs = [(str(r.value), r.item.notes[EXAMPLE].answers) for r in results if EXAMPLE in r.item.notes]
    if not pairs or any(r.value is None for r in results):
        raise InputError("there are no answers to judge", hint="postprocessing plugin bert_predict")
    return {
        "exact_match": 100 * float(np.mean([exact(a, t) for a, t in pairs])),
        "f1": 100 * float(np.mean([f1(a, t) for a, t in pairs])),
    }


@plugin("squad_em", FILE)
class SquadExactMatch(MetricPlugin):
    def evaluate(self, results: Sequence[Result], context: Context) -> dict[str, float]:
        return {"exact_match": squad_scores(results)["exact_match"]}


@plugin("squad_f1", FILE)
class SquadF1(MetricPlugin):
    def evaluate(self, results: Sequence[Result], context: Context) -> dict[str, float]:
        return {"f1": squad_scores(results)["f1"]}


@plugin("squad_eval", MEMORY)
class SquadEval(MetricPlugin):
    """Answers from scores, and both figures."""

    vocabulary: str = param(kind_text)
    max_answer_length: int = param(kind_int, 30)
    n_best_size: int = param(kind_int, 20)
    do_lower_case: bool = param(kind_bool, False)
    squad_version: int = param(kind_int, 1, choices=(1, 2))
    round: int = param(kind_int, 6)
    cached_vocab_path: str | None = param(kind_optional, None)

    def evaluate(self, results: Sequence[Result], context: Context) -> dict[str, float]:
        found = answered(results, self.n_best_size, self.max_answer_length, self.squad_version == 2)
        return {name: round(value, self.round) for name, value in squad_scores(found).items()}
