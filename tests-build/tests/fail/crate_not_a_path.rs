#[andweorc::main(crate = "and weorc")]
async fn main() {}
