"""One observation more on a converged curve."""
