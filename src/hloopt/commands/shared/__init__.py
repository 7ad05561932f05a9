"""Parts of commands that several share: options, consoles, output, exit codes."""
