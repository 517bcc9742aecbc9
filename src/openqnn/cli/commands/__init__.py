"""The commands of `openqnn`, one a file: its options, its run and its report, and COMMAND at the end."""
