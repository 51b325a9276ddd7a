"""Exit codes that no error class has: findings of `doctor`, and a question answered with no."""

REFUSED = 4
DECLINED = 1
