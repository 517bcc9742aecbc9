"""Kernels of 8-bit data."""
