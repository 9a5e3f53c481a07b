"""What machines of clouds cost, and on which terms."""
