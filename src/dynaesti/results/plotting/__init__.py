"""Figures and the data behind them."""
