"""Inferences from files to files, as qnn-net-run makes them."""
