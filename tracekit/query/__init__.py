"""Profiles as tables for SQL: what the tables hold, how they are made of modules' results, and the database."""
