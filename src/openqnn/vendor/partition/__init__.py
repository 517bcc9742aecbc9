"""One graph on several backends: who takes which node, where it is cut, and running the parts."""
