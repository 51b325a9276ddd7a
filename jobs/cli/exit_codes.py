"""The exit codes of commands that find state to be refused, or that are told not to go on."""

REFUSED, DECLINED = 4, 1
