#[andweorc::main(colour = "red")]
async fn main() {}
