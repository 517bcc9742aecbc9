"""The tools under the names that QNN users know, one a file with TOOL at the end."""
