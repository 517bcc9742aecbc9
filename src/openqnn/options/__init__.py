"""Options, each declared once as a field of a frozen dataclass: parser, help and Python API derive from
it."""
