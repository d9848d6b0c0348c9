"""The erasure of accounts: closed at once, erased store by store, told in a receipt."""
