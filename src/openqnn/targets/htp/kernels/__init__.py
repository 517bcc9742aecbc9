"""HTP's own arithmetic, as measured on libQnnHtp: a module for each kind of kernel, by width of the data."""
