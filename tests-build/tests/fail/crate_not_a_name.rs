#[andweorc::test(crate = "andweorc::")]
async fn test() {}

fn main() {}
