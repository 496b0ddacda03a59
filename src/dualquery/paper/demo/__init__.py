"""An embedded example: an invented health survey, which a program makes about nobody real."""
