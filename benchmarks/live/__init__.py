"""The live parts measured: scorer and states, the service under load, its page."""
