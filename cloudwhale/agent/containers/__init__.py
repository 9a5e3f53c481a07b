"""Jobs in containers: from an image to an exit record, by Docker."""
