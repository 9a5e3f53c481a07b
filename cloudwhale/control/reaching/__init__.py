"""Makes another own server a node by ssh: looks at it, installs an agent, starts it."""
