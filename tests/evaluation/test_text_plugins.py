"""Plugins about text: tokens, SQuAD, translation and their metrics, against other libraries and by hand."""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sacrebleu
import sentencepiece
from sklearn.metrics import log_loss
from tokenizers import ByteLevelBPETokenizer

from openqnn.errors import InputError, UsageError
from openqnn.evaluation.plugins.plugin import Context, Dataset, Item, Result
from openqnn.evaluation.plugins.registry import make_plugin
from openqnn.evaluation.plugins.squad import EXAMPLE, FEATURE, PACKED, Feature, exact, f1
from openqnn.evaluation.plugins.tokens import TOKENS

TEXT = Path(__file__).parents[2] / "CONTRIBUTING.md"
VOCABULARY_WORDS = "who built the bridge in paris ? ann and bob did , 18 ##90 . it is old"
WORDS = [*(f"[{name}]" for name in ("PAD", "UNK", "CLS", "SEP", "MASK")), *VOCABULARY_WORDS.split()]


def made(stage: str, name: str, params: dict[str, Any], *, memory: bool = False) -> Any:
    return make_plugin(stage, name, params, "here", memory=memory)


def context(folder: Path, annotation: Path | None = None, **said: Any) -> Context:
    return Context(Dataset(folder, (), (), annotation), folder, **said)


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tokenizer of GPT-2's kind, trained on a page of this repository."""
    folder = tmp_path_factory.mktemp("gpt2")
    tokenizer = ByteLevelBPETokenizer()
    tokenizer.train([str(TEXT)], vocab_size=400, show_progress=False)
    tokenizer.save_model(str(folder))
    return folder


def test_rows_of_tokens(gpt2: Path) -> None:
    params = {
        "vocab_file": str(gpt2 / "vocab.json"), "merges_file": str(gpt2 / "merges.txt"), "seq_length": 16,
        "past_seq_length": 4, "past_shape": [1, 2, 4, 8], "num_past": 2,
    }  # fmt: skip
    dataset = Dataset(TEXT.parent, (Item((TEXT.name,)),))
    rows = made("dataset", "gpt2_tokenizer", params).transform(dataset, context(gpt2)).items
    ids = ByteLevelBPETokenizer(params["vocab_file"], params["merges_file"]).encode(TEXT.read_text()).ids
    assert len(rows) == len(ids) // 16
    assert rows[1].arrays[0].tolist() == [ids[16:32]]
    assert [a.shape for a in rows[0].arrays] == [(1, 16), (1, 20), (1, 2, 4, 8), (1, 2, 4, 8)]
    wiki = {"seq_length": 16, "tokenizer_name": str(gpt2), "mask_dtype": "int64"}
    found = made("dataset", "tokenize_wikitext_2", wiki, memory=True).transform(dataset, context(gpt2)).items
    assert found[1].arrays[0].tolist() == [ids[16:32]]
    assert found[0].arrays[2].tolist() == [list(range(16))]
    named = made("dataset", "tokenize_wikitext_2", wiki | {"tokenizer_name": "gpt2"}, memory=True)
    with pytest.raises(InputError, match="no such file or folder") as caught:
        named.transform(dataset, context(gpt2))
    assert "nothing is downloaded" in caught.value.hint


def test_perplexity_is_the_exponential_of_log_loss(tmp_path: Path) -> None:
    chance = np.random.default_rng(3)
    tokens = chance.integers(0, 7, (2, 9))
    logits = chance.normal(size=(2, 1, 9, 7))
    items = [Item(("a",), (), (), {TOKENS: row}) for row in tokens]
    results = [Result(item, (scores,)) for item, scores in zip(items, logits, strict=True)]
    found = made("metric", "perplexity", {}).evaluate(results, context(tmp_path))
    odds = np.exp(logits[:, 0, :-1].reshape(-1, 7))
    loss = log_loss(tokens[:, 1:].ravel(), odds / odds.sum(1, keepdims=True), labels=range(7))
    assert found["perplexity"] == pytest.approx(math.exp(loss), rel=1e-9)
    (tmp_path / "ids.txt").write_text("\n".join(" ".join(map(str, row)) for row in tokens))
    bare = [Result(Item(("a",)), r.arrays) for r in results]
    told = made("metric", "perplexity", {}).evaluate(bare, context(tmp_path, tmp_path / "ids.txt"))
    assert told == found


def test_lines_become_files(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    dataset = Dataset(tmp_path, (Item(("a.txt",)),))
    items = made("dataset", "split_txt_data", {}).transform(dataset, context(tmp_path)).items
    assert [Path(item.files[0]).read_text() for item in items] == ["one\n", "two\n"]


def test_fewer_entries() -> None:
    items = tuple(Item((str(i),)) for i in range(20))
    dataset = Dataset(Path("."), items, items[:9])
    few = made("dataset", "filter_dataset", {"max_inputs": 5, "max_calib": -1}).transform(
        dataset, context(Path("."))
    )
    assert few.items == items[:5]
    assert few.calibration == items[:9]
    mixed = made("dataset", "filter_dataset", {"max_inputs": 5, "max_calib": 3, "random": True})
    once, twice = (mixed.transform(dataset, context(Path("."))) for _ in range(2))
    assert once == twice
    assert once.items != items[:5]


# -- SQuAD ---------------------------------------------------------------------------------------------------


@pytest.fixture
def squad(tmp_path: Path) -> Path:
    asked = [
        {
            "id": "q1",
            "question": "Who built the bridge?",
            "answers": [{"text": "Ann and Bob", "answer_start": 0}],
        },
        {"id": "q2", "question": "Who is old?", "answers": [{"text": "the bridge", "answer_start": 16}]},
    ]
    paragraph = {"context": "Ann and Bob did the bridge in Paris in 1890. It is old.", "qas": asked}
    (tmp_path / "dev.json").write_text(json.dumps({"data": [{"paragraphs": [paragraph]}]}))
    (tmp_path / "vocab.txt").write_text("\n".join(WORDS))
    return tmp_path


def features(squad: Path, **params: Any) -> list[Item]:
    dataset = Dataset(squad, (Item(("dev.json",)),))
    examples = made("dataset", "create_squad_examples", {}).transform(dataset, context(squad)).items
    read = made("preprocessing", "squad_read", {"vocab_path": str(squad), **params})
    return read.gather(examples, context(squad))


def scores(feature: Feature, answer: str, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Start and end scores that point to an answer, where the window has it."""
    start, end = np.zeros((1, length)), np.zeros((1, length))
    at = feature.example.context.index(answer)
    for i, offset in enumerate(feature.offsets):
        if offset is not None:
            start[0, i] += 5 * (offset[0] == at)
            end[0, i] += 5 * (offset[1] == at + len(answer))
    return start, end


def test_answers_of_squad(squad: Path) -> None:
    items = features(squad, max_seq_length=20, doc_stride=4)
    assert len(items) > 2  # windows
    first = items[0].notes[FEATURE]
    assert first.ids[0] == WORDS.index("[CLS]")
    assert first.ids[1] == WORDS.index("who")
    assert items[0].arrays[1].sum() == len(first.ids)
    wanted = {"q1": "Ann and Bob", "q2": "bridge"}
    results = [Result(i, scores(i.notes[FEATURE], wanted[i.notes[FEATURE].example.id], 20)) for i in items]
    predict = made("postprocessing", "bert_predict", {"vocab_path": str(squad)})
    answers = predict.gather(results, context(squad))
    assert [a.value for a in answers] == ["Ann and Bob", "bridge"]
    assert made("metric", "squad_em", {}).evaluate(answers, context(squad)) == {"exact_match": 100}
    results[-1] = Result(items[-1], scores(items[-1].notes[FEATURE], "It", 20))
    joined = [Result(r.item, (np.stack(r.arrays, axis=-1),)) for r in results]
    assert predict.gather(joined, context(squad))[0].value == "Ann and Bob"


def test_squad_in_memory(squad: Path) -> None:
    dataset = Dataset(
        squad, (Item(("dev.json",)),), (), None, {"vocabulary": str(squad), "do_lower_case": True}
    )
    said = Context(dataset, squad, memory=True)
    one = made("dataset", "create_squad_examples", {"max_inputs": 1}, memory=True).transform(dataset, said)
    items = made("preprocessing", "squad_preprocess", {"mask_type": "bool"}, memory=True).gather(
        one.items, said
    )
    assert items[0].arrays[0].shape == (1, 384)
    assert items[0].arrays[1].dtype == bool
    results = [Result(i, scores(i.notes[FEATURE], "Ann", 384)) for i in items]
    post = made("postprocessing", "squad_postprocess", {}, memory=True)
    checked = [post.process(r, said) for r in results]
    found = made("metric", "squad_eval", {"vocabulary": str(squad)}, memory=True).evaluate(checked, said)
    assert found == {"exact_match": 0, "f1": 50}


def test_packed_features(squad: Path) -> None:
    plain = features(squad, max_seq_length=30)
    items = features(squad, max_seq_length=60, packing_strategy=True)
    assert len(items) == 1
    assert items[0].arrays[1].max() == 2
    wanted = {"q1": "Ann and Bob", "q2": "the bridge"}
    parts = [scores(f, wanted[f.example.id], len(f.ids)) for f in items[0].notes[PACKED]]
    filled = [np.zeros((1, 60)), np.zeros((1, 60))]
    for i in range(2):
        joined = np.concatenate([p[i][0] for p in parts])
        filled[i][0, : len(joined)] = joined
    predict = made("postprocessing", "bert_predict", {"vocab_path": str(squad), "packing_strategy": True})
    answers = {
        a.item.notes[EXAMPLE].id: a.value
        for a in predict.gather([Result(items[0], tuple(filled))], context(squad))
    }
    assert answers == wanted
    short = features(squad, max_seq_length=30, mask_type="Compressed", compressed_mask_length=4)
    assert short[0].arrays[1].tolist() == [[len(plain[0].notes[FEATURE].ids), 0, 0, 0]]


def test_exact_match_and_f1_by_hand() -> None:
    assert exact("The  Bridge!", ["a bridge"]) == 1
    assert exact("bridges", ["bridge"]) == 0
    assert f1("the old bridge", ["old stone bridge"]) == pytest.approx(2 * 2 / 5)
    assert f1("", []) == 1
    assert f1("paris", ["london", "in paris"]) == pytest.approx(2 / 3)


def test_a_file_that_is_no_squad(squad: Path) -> None:
    (squad / "dev.json").write_text("{}")
    with pytest.raises(InputError, match="no file of SQuAD"):
        features(squad)


# -- translation ---------------------------------------------------------------------------------------------

VOCABULARY = ["<unk>", "<blank>", "<s>", "</s>", "hello", "world", "▁hel", "lo"]


def translated(folder: Path, path: Path, ids: Sequence[int], *, trust: bool = False) -> str:
    (folder / "line.txt").write_text("hello world\n")
    said = context(folder, trust=trust)
    pre = made("preprocessing", "onmt_preprocess", {"vocab_path": str(path), "src_seq_len": 6})
    items = pre.gather([Item(("line.txt",))], said)
    assert items[0].arrays[0].tolist() == [[4, 5, 1, 1, 1, 1]]
    assert items[0].arrays[1].tolist() == [2]
    post = made("postprocessing", "onmt_postprocess", {"sentencepiece_model_path": "none"})
    return post.gather([Result(items[0], (np.array([ids]),))], said)[0].value


def test_words_to_numbers_and_back(tmp_path: Path) -> None:
    text = tmp_path / "vocab.txt"
    text.write_text("\n".join(VOCABULARY))
    assert translated(tmp_path, text, [2, 5, 4, 3, 4]) == "world hello"


def test_a_pickle_needs_trust(tmp_path: Path) -> None:
    path = tmp_path / "vocab.pickle"
    path.write_bytes(pickle.dumps({"src": VOCABULARY, "tgt": {t: i for i, t in enumerate(VOCABULARY)}}))
    with pytest.raises(UsageError, match="can run any code") as caught:
        translated(tmp_path, path, [4])
    assert "-trust" in caught.value.hint
    assert translated(tmp_path, path, [4, 3], trust=True) == "hello"


def test_pieces_of_words(tmp_path: Path) -> None:
    prefix = tmp_path / "pieces"
    sentencepiece.SentencePieceTrainer.train(
        input=str(TEXT), model_prefix=str(prefix), vocab_size=200, minloglevel=9, hard_vocab_limit=False
    )
    model = f"{prefix}.model"
    pieces = sentencepiece.SentencePieceProcessor(model_file=model)
    vocabulary = ["<blank>", "<s>", *(pieces.id_to_piece(i) for i in range(pieces.get_piece_size()))]
    (tmp_path / "vocab.json").write_text(json.dumps(vocabulary))
    (tmp_path / "line.txt").write_text("Write a test")
    params = {
        "vocab_path": str(tmp_path / "vocab.json"),
        "skip_sentencepiece": False,
        "sentencepiece_model_path": model,
    }
    items = made("preprocessing", "onmt_preprocess", params).gather([Item(("line.txt",))], context(tmp_path))
    count = int(items[0].arrays[1][0])
    post = made("postprocessing", "onmt_postprocess", {"sentencepiece_model_path": model})
    echo = Result(items[0], (items[0].arrays[0][:, :count],))
    assert post.gather([echo], context(tmp_path))[0].value == "Write a test"


def test_bleu_is_that_of_sacrebleu(tmp_path: Path) -> None:
    truth = ["the bridge in paris is old and long", "ann and bob did it"]
    found = ["the bridge in paris is very old", "ann and bob did it"]
    (tmp_path / "truth.txt").write_text("\n".join(truth))
    results = [Result(Item((str(i),)), (), text) for i, text in enumerate(found)]
    score = made("metric", "bleu", {"round": 4}).evaluate(results, context(tmp_path, tmp_path / "truth.txt"))[
        "bleu"
    ]
    assert score == pytest.approx(sacrebleu.corpus_bleu(found, [truth]).score, abs=1e-4)
    assert 0 < score < 100
