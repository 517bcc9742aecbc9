"""From the user's model to a graph: one package per source format, imported when such a model is given."""
