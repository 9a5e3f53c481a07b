"""What should happen: pure functions from a world to a plan."""
