"""The vendor's C interface: neutral graph records, and sessions that run them on the real libraries."""
