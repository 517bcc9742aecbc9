"""Runs that are compared: their form, the jobs that execute them, and what comes of them."""
