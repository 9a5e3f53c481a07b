"""Making it happen: clock, database, network."""
