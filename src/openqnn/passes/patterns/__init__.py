"""Shapes of nodes that exporters write for one operation, with what takes their place."""
