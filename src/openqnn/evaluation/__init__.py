"""Evaluation: what each way to quantize a model costs in accuracy, against a reference and by metrics."""
