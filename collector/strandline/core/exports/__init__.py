"""Answers in other formats: lists and tables as CSV; graphs as CSV, GraphML, DOT or Mermaid."""
