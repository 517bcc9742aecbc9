"""QNN graphs in Google's Model Explorer."""
