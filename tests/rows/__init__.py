"""What is tested of each operation, one row an operation; tests/test_rows.py says how."""
