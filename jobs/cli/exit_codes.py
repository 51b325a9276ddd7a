"""Exit codes that no error class has.

They are those of findings of `doctor`, of a `status` that somebody should look at, and of a
question answered with no.
"""

REFUSED = 4
ATTENTION = 5
DECLINED = 1
