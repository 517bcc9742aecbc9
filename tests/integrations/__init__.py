"""Tests of the small packages in `integrations`."""
