from .dispatch import main as main
