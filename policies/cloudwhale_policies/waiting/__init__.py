"""Wait policies: who may start now, who waits for a start to come, who is rented for."""
