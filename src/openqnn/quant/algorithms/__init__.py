"""Algorithms that make a quantized graph better: they change weights, biases or encodings."""
