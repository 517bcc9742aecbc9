"""Readers of the viewer: a module for each kind of file, which gives its graphs or lists as views."""
