#[andweorc::main(crate)]
async fn main() {}
