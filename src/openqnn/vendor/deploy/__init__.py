"""Bundles that run a model where OpenQNN is not installed, and the devices that they are sent to."""
