"""Plugins of the evaluator: steps of datasets, preprocessing, postprocessing and metrics, by their names.

A plugin of one's own is a class in a Python file of a folder that CUSTOM_PLUGIN_PATH names:

    from openqnn.evaluation.plugins import PreprocessPlugin, param, plugin

    @plugin("invert")
    class Invert(PreprocessPlugin):
        most: float = param(float, 255.0)

        def process(self, item, context):
            return item.with_arrays([self.most - array for array in item.arrays])
"""

from openqnn.evaluation.plugins.plugin import (
    MISSING,
    Context,
    Dataset,
    DatasetPlugin,
    Item,
    MetricPlugin,
    Plugin,
    PostprocessPlugin,
    PreprocessPlugin,
    Result,
    param,
    plugin,
)

__all__ = [
    "MISSING",
    "Context",
    "Dataset",
    "DatasetPlugin",
    "Item",
    "MetricPlugin",
    "Plugin",
    "PostprocessPlugin",
    "PreprocessPlugin",
    "Result",
    "param",
    "plugin",
]
