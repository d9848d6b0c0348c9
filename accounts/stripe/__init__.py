"""Stripe as the payment provider. Without its keys nothing of it is used, and billing is by invoice only."""
