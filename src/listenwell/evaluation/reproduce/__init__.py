"""Every table and figure of a paper, published beside measured."""
