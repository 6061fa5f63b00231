//! Programs in `pass` build and run; those in `fail` are refused with the messages beside them.

#[test]
fn accepted() {
    trybuild::TestCases::new().pass("tests/pass/*.rs");
}

#[test]
fn refused() {
    trybuild::TestCases::new().compile_fail("tests/fail/*.rs");
}
