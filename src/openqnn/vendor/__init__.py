"""Graphs on Qualcomm's libraries, always in a child process of `openqnn.worker`."""
