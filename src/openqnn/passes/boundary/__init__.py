"""How inputs and outputs look from outside: layouts, types, colours, and the encodings known of them."""
