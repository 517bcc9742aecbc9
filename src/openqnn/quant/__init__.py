"""The quantizer: from a graph in floating point and sample data to a graph in fixed point."""
