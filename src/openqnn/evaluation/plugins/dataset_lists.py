"""Plugins about the lists of a dataset: fewer of its entries, and text files taken apart."""

from __future__ import annotations

import random as chance
from collections.abc import Sequence
from dataclasses import replace

from openqnn.errors import InputError
from openqnn.evaluation.plugins.parameter_kinds import kind_bool, kind_int
from openqnn.evaluation.plugins.plugin import Context, Dataset, DatasetPlugin, Item, param, plugin


@plugin("filter_dataset")
class FilterDataset(DatasetPlugin):
    """The first entries, or with `random` any: the same ones each time. -1 means all."""

    max_inputs: int = param(kind_int)
    max_calib: int = param(kind_int)
    random: bool = param(kind_bool, False)

    def transform(self, dataset: Dataset, context: Context) -> Dataset:
        items = self._chosen(dataset.items, self.max_inputs)
        return replace(dataset, items=items, calibration=self._chosen(dataset.calibration, self.max_calib))

    def _chosen(self, items: Sequence[Item], most: int) -> tuple[Item, ...]:
        order = list(items)
        if self.random:
            chance.Random(0).shuffle(order)
        return tuple(order if most < 0 else order[:most])


@plugin("split_txt_data")
class SplitText(DatasetPlugin):
    """A text file for each line of the text files of the dataset."""

    def transform(self, dataset: Dataset, context: Context) -> Dataset:
        return replace(
            dataset,
            items=self._lines(dataset, dataset.items, context),
            calibration=self._lines(dataset, dataset.calibration, context),
        )

    def _lines(self, dataset: Dataset, items: Sequence[Item], context: Context) -> tuple[Item, ...]:
        folder = context.folder / "dataset"
        folder.mkdir(parents=True, exist_ok=True)
        found: list[Item] = []
        for item in items:
            path = dataset.path(item.files[0])
            try:
                lines = path.read_text(encoding="utf-8").splitlines()
            except OSError as error:
                raise InputError(f"{path}: cannot be read ({error.strerror})") from error
            for number, line in enumerate(lines):
                part = (folder / f"{path.stem}_{number}.txt").absolute()
                part.write_text(line + "\n", encoding="utf-8")
                found.append(replace(item, files=(str(part),), notes={**item.notes, "text": line}))
        return tuple(found)
