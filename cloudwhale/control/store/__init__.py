"""Where truth is kept."""
