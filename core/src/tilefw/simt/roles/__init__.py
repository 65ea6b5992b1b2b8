"""Roles: a loop is divided between waves that copy into rings of slots and waves that work on what is there."""
