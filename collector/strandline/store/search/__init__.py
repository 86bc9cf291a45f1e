"""The search: texts of datasets and jobs, folded, in tables that the database scans."""
