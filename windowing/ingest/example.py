"""Orders of two shops, which `tidemark init` begins with where it is given no file."""

NAME = "orders-1.csv"
CONTENT = """order_id,shop,ordered_at,price
A1,north,2026-03-02T10:05:00Z,20.00
A2,north,2026-03-02T10:20:00Z,15.50
A3,south,2026-03-02T10:40:00Z,9.99
A4,south,2026-03-02T11:02:00Z,12.00
A5,north,2026-03-02T10:55:00Z,30.00
A2,north,2026-03-02T10:20:00Z,15.50
A6,north,2026-03-02T11:10:00Z,8.00
A8,south,2026-03-02T11:30:00Z,22.00
A9,north,2026-03-02T11:45:00Z,18.00
"""
