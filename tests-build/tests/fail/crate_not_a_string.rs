#[andweorc::main(crate = 7)]
async fn main() {}
