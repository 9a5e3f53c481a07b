"""Reads what was decided and paid."""
