"""Graph preparation: rewritings of a Relax module for fewer, larger and simpler functions, one in each file."""
