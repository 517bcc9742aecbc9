"""What graphs are made for: which forms a backend takes, how it computes them, and what it refuses."""
