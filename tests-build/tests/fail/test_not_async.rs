#[andweorc::test]
fn test() {}

fn main() {}
