"""Routing tried out in virtual time: the real router, on a fleet and a day's conversations that are made up."""
