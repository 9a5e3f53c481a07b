"""What the house asks of others: protocols and their errors."""
