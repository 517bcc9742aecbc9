"""What an attacker, a neighbour or a failing machine can do: each fault that was found, at its smallest."""
