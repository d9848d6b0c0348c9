"""Imports: conversations from this product's own exports, and from those of ChatGPT."""
