"""What stands inside a machine of the box: files of its image, and what starts it."""
