"""What things are: values only."""
