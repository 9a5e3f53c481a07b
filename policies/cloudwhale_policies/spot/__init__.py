"""Spot policies: where a job with a deadline runs in the tick that begins, and in which market."""
