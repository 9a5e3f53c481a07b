"""cloudwhale: pack jobs onto the GPUs you have, rent the rest, stay inside the budget."""

__version__ = "0.1.0"
