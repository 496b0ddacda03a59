"""An embedded example: an invented health survey, made by a program, about nobody."""
