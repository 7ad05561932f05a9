"""The framework of passes: base class, options, registry, pipelines, runner, validation."""
