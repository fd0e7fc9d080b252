"""Random programs of JAX over dispatched functions whose decisions change."""
