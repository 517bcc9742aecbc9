"""Looking at graphs and results."""
