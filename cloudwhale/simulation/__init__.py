"""Another world, the same house."""
