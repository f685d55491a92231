"""The HTTP surface: application factory, edge, problems, controllers."""
