"""Kernels of 16-bit data."""
