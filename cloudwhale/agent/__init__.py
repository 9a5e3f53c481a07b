"""The program on every machine: pulls orders, runs jobs, saves checkpoints."""
