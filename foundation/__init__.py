"""What every app stands on and none owns: the error root, identifiers, text rules, the way to the stores."""
