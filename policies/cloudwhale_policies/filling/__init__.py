"""What is preferred when pods come one at a time and never leave."""
