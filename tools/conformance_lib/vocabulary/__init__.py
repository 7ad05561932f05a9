"""The words of the documents beside the tables that are not keys of `expect`: fields of records,
configurations, names of passes with their options, and what only passes to come could answer."""
