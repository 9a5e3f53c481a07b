"""What is preferred."""
