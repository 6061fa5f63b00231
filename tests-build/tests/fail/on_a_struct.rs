#[andweorc::main]
struct Main;

fn main() {}
