"""Telling people: what is worth it, to whom it goes, and whether it has arrived."""
