"""The paper's figures and tables: plans as data, one runner, rows in files, verdicts and a page from the rows."""
