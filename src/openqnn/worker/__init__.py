"""Child processes for risky work: a crash or a hang of one becomes an error. Nothing here knows QNN."""
