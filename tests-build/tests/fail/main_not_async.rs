#[andweorc::main]
fn main() {}
