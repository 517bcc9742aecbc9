"""What several commands and tools have in common."""
