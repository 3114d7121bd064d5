"""The methods of `loopwright.Client`, by what they are about: it inherits them."""
