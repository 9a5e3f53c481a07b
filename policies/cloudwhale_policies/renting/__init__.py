"""Which machines are rented: the ways to choose them, from the plain one to the best of all."""
