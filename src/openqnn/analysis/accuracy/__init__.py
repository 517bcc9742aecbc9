"""Where the accuracy of a network goes: layer by layer errors, their causes and remedies."""
