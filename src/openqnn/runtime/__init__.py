"""Backends that run graphs."""
