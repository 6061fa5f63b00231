#[andweorc::test(flavor = "strawberry")]
async fn test() {}

fn main() {}
