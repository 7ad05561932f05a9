"""Exceptions that end the check of one record."""

from __future__ import annotations


class RecordError(Exception):
    """A record cannot be checked: it says something this package does not know, or names
    something that is not there. The record fails with the message."""


class NotModelled(Exception):
    """A record is about something that hloopt does not have; says what."""
