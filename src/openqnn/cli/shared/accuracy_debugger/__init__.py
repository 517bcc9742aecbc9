"""The parts of qnn-accuracy-debugger: a module for each mode, and what they share."""
