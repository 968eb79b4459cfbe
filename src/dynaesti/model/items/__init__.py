"""Item response models: their formulas, priors, and the bank of all items of a fit."""
