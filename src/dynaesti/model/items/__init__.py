"""Item response models.

Each fills its rows from parameters, and is fitted from expected counts on them.
"""
