//! Nothing: the tests are what this crate is for.
