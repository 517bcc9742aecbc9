"""The plugin create_batch: several items as one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from openqnn.evaluation.plugins.parameter_kinds import kind_bool
from openqnn.evaluation.plugins.plugin import FILE, Context, Item, PreprocessPlugin, param, plugin

MEMBERS = "members"  # the items that a batch was made of
FILLED = "filled"  # how many copies fill the last batch


@plugin("create_batch")
class CreateBatch(PreprocessPlugin):
    """Items joined along the first axis, as many as the config's batchsize says.

    A last batch that is not full is filled with its last item, or left out with `truncate`.
    """

    delete_prior: bool = param(kind_bool, True, only=FILE)
    truncate: bool = param(kind_bool, False, only=FILE)

    def gather(self, items: Sequence[Item], context: Context) -> list[Item]:
        size = context.batch
        if size <= 1:
            return list(items)
        made: list[Item] = []
        for start in range(0, len(items), size):
            members = list(items[start : start + size])
            missing = size - len(members)
            if missing and self.truncate:
                break
            whole = members + [members[-1]] * missing
            arrays = [
                np.concatenate([np.asarray(m.arrays[i]) for m in whole]) for i in range(len(whole[0].arrays))
            ]
            files = tuple(f for m in members for f in m.files)
            notes = {MEMBERS: tuple(members), FILLED: missing}
            made.append(Item(files, tuple(arrays), members[0].names, notes))
        return made
