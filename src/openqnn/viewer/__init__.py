"""The graph viewer: a model as a page in the browser, served on this machine or as one file."""
