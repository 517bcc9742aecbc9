"""What calibration sees of tensors: their ranges and histograms."""
