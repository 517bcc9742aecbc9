"""Random damage to real model files."""
