"""Position encodings, attention."""

from tests.ops.database import case, f

CASES = [
    case("RotaryEmbedding", f(2, 3, 4, 8), f(2, 4, 4), f(2, 4, 4)),
    case("RotaryEmbedding", f(2, 3, 4, 8), f(2, 4, 4), f(2, 4, 4), interleaved=True),
    case("RotaryEmbedding", f(1, 3, 4, 8), f(1, 4, 2), f(1, 4, 2), rotary_embedding_dim=4),
    case("RotaryEmbedding", f(1, 3, 4, 8), f(1, 4, 3), f(1, 4, 3), rotary_embedding_dim=6, interleaved=True),
    case("GroupQueryAttention", f(1, 2, 8), f(1, 2, 4), f(1, 2, 4), shape=(1, 2, 8)),
]
