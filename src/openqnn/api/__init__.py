"""The Python API: convert, load and save, quantize, compile, Session."""
