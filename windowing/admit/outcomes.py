"""What admission decides of a row, and where refused rows are. No Spark."""

ACCEPTED = "accepted"
LATE = "late"
DUPLICATE = "duplicate"
QUARANTINED = "quarantined"
ERASED = "erased"
"""Its key, or a value of it, was erased: it is counted and not stored."""
PARTIAL = "partial"
"""Late for some windows, and accepted for the others."""

REFUSED = {"_late": (LATE, PARTIAL), "_duplicates": (DUPLICATE,), "_quarantine": (QUARANTINED,)}
"""The tables of refused rows, with the outcomes of their rows."""
REFUSED_OUTCOMES = tuple(outcome for outcomes in REFUSED.values() for outcome in outcomes)
"""The outcomes of all these rows."""
