"""The rules, by subject: modules and packages, made by `hloopt.checks.lint.model.rule`."""
