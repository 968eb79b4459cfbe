"""Item response models: each fills its rows from parameters, and is fitted from expected counts on them."""
