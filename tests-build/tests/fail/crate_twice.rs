#[andweorc::main(crate = "andweorc", crate = "andweorc")]
async fn main() {}
