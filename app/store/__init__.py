"""The metadata database: tables, catalog, jobs, settings rows, migrations."""
