"""The rules, by subject: each module holds some, made by `hloopt.checks.lint.model.rule`."""
