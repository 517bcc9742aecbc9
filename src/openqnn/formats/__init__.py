"""File formats, as bytes and arrays: nothing here knows the graph."""
