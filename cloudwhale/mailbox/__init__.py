"""How controller and agents meet: documents in an object store."""
