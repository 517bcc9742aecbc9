"""Metrics of text: bleu and perplexity."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from openqnn.errors import InputError, LibraryError
from openqnn.evaluation.plugins.images import EXTRA
from openqnn.evaluation.plugins.parameter_kinds import kind_int
from openqnn.evaluation.plugins.plugin import FILE, Context, MetricPlugin, Result, param, plugin
from openqnn.evaluation.plugins.tokens import TOKENS


@plugin("bleu", FILE)
class Bleu(MetricPlugin):
    """By sacrebleu, against the lines of the annotation file, one for each item."""

    round: int = param(kind_int, 1)

    def evaluate(self, results: Sequence[Result], context: Context) -> dict[str, float]:
        try:
            import sacrebleu
        except ImportError:
            raise LibraryError("bleu needs the package sacrebleu", hint=EXTRA) from None
        path = context.dataset.annotation_file("bleu")
        truths = path.read_text(encoding="utf-8").splitlines()[: len(results)]
        if len(truths) < len(results):
            raise InputError(f"{path}: {len(truths)} lines for {len(results)} items")
        score = sacrebleu.corpus_bleu([str(r.value) for r in results], [truths]).score
        return {"bleu": round(float(score), self.round)}


@plugin("perplexity")
class Perplexity(MetricPlugin):
    """The exponential of the mean negative log-likelihood of each next token.

    The truth is what gpt2_tokenizer or tokenize_wikitext_2 read, or lines of token ids in the annotation
    file.
    """

    logits_index: int = param(kind_int, 0)

    def evaluate(self, results: Sequence[Result], context: Context) -> dict[str, float]:
        losses: list[float] = []
        lines = self._lines(results, context)
        for index, result in enumerate(results):
            tokens = result.item.notes[TOKENS] if lines is None else lines[index]
            if self.logits_index >= len(result.arrays):
                raise InputError(
                    f"perplexity: logits_index {self.logits_index}: there are {len(result.arrays)} outputs"
                )
            logits = np.asarray(result.arrays[self.logits_index], np.float64)
            rows = logits.reshape(-1, logits.shape[-1])[: len(tokens) - 1]
            if len(rows) < len(tokens) - 1:
                raise InputError(f"perplexity: logits of shape {list(logits.shape)} for {len(tokens)} tokens")
            shifted = rows - rows.max(axis=1, keepdims=True)
            known = shifted[np.arange(len(rows)), np.asarray(tokens[1:], np.int64)]
            losses += (np.log(np.exp(shifted).sum(axis=1)) - known).tolist()
        return {"perplexity": float(np.exp(np.mean(losses)))}

    def _lines(self, results: Sequence[Result], context: Context) -> list[list[int]] | None:
        if all(TOKENS in r.item.notes for r in results):
            return None
        path = context.dataset.annotation_file("perplexity")
        try:
            found = [[int(w) for w in line.split()] for line in path.read_text().splitlines() if line.strip()]
        except ValueError as error:
            raise InputError(f"{path}: these are no token ids ({error})") from error
        if len(found) < len(results):
            raise InputError(f"{path}: {len(found)} lines for {len(results)} items")
        return found
