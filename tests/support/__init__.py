"""What several tests use: slow truths (`oracles`), drawn data (`simulated`) and ways to look."""
