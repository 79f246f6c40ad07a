"""What other packages need to keep infeed's loaders. Lightning needs nothing; see docs/python.md."""
