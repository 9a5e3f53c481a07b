"""GCP Compute Engine: machines, their stops, their prices."""
