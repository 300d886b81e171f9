//! Nothing of its own: the tests stand in `tests/`.
