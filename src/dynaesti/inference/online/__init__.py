"""Online updates: a converged curve takes in one observation after another."""
